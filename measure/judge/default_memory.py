"""Figures of strategies with the machine's default memory, where they were timed with memory from a pool: whoever sets
nothing runs that program. Pure functions of a run.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from measure.judge import intervals, limit
from measure.judge.intervals import Level, Ratio
from measure.judge.ranking import Order
from measure.run import text
from measure.run.run import DEFAULT_MEMORY, Measurement, Run

# What people take who do not measure: TensorFlow's own name for a map first.
USUAL = ("map_fn.graph", "loop.eager")
# A leader that is slower by clearly more than this is worth a sentence, and one page fault more tells why.
_TELLING, _LEAST_FAULTS = 1.2, 1.0
_MOST_NAMED = 3


@dataclass(frozen=True)
class Default:
    """A strategy with the default allocator: seconds of a call, its ratio to what it takes with memory from a pool, and
    the page faults of a call with either, None where none were counted."""

    strategy: str
    seconds: float
    ratio: Ratio
    faults: float | None
    pool_faults: float | None

    @property
    def is_slower(self) -> bool:
        """True if it is clearly slower than with a pool, and its page faults say why: a cause is counted."""
        more = (self.faults or 0.0) - (self.pool_faults or 0.0)
        return self.ratio.low > _TELLING and more >= _LEAST_FAULTS


def timed(run: Run, levels: Mapping[str, Level]) -> dict[str, Default]:
    """The strategies that were timed with the default allocator, by their slugs. ``levels``: of the run's strategies
    and twins."""
    entered = [item for item in run.measurements if item.has_default_memory and item.outcome == "ok" and item.latency]
    return {
        own.strategy: Default(
            own.strategy,
            item.latency.median_s,
            intervals.ratio(levels[item.strategy], levels[own.strategy], run.analysis.confidence),
            limit.page_faults(item),
            limit.page_faults(own),
        )
        for item in entered
        if item.latency and (own := run.measurement(str(item.twin_of))).strategy in levels and item.strategy in levels
    }


def leaders(run: Run, levels: Mapping[str, Level]) -> list[str]:
    """The strategies that may be the fastest with the default allocator, by the rule of ranks; the fastest first."""
    ranked = {slug for group in run.ranking for slug in group}
    defaults = {slug: levels[slug + DEFAULT_MEMORY] for slug in timed(run, levels) if slug in ranked}
    return next(iter(Order(defaults, run.analysis).groups()), [])


def sentence(run: Run, levels: Mapping[str, Level]) -> str:
    """The sentences on the strategy to take where it is clearly slower with the default allocator, and on who leads
    then, where it does not; empty where there is nothing to say."""
    first = run.measurement(run.ranking[0][0])
    defaults, others = timed(run, levels), leaders(run, levels)
    own = defaults.get(first.strategy)
    if own is None or not own.is_slower:
        return ""
    words = f"{first.strategy} takes {text.seconds(own.seconds)}: {own.faults:,.0f} page faults a call"
    if others and first.strategy not in others:
        leaders_s = [defaults[slug].seconds for slug in others]
        names = f"{text.listed(others, _MOST_NAMED)} {'leads' if len(others) == 1 else 'lead'}"
        words += f", and {names} at {text.span_of_seconds(min(leaders_s), max(leaders_s))}"
    return f"With this machine's default memory {words}. {_cure(first)}"


def _cure(item: Measurement) -> str:
    if item.code is not None and "mallopt" in item.code.source:
        return "The lines of its script that call mallopt avoid them."
    return "TF_CPU_ALLOCATOR_USE_BFC=true before importing TensorFlow avoids them."
