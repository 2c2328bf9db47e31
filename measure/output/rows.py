"""One row for each strategy of a run: what charts, tables and figures are made of. Pure."""

from dataclasses import dataclass, replace
from typing import Any

from msgspec import UNSET

from measure.judge import break_even, default_memory, intervals, limit
from measure.judge.analysis import ranks
from measure.judge.default_memory import USUAL
from measure.judge.levels import shown_levels
from measure.run import text
from measure.run.run import Correctness, Latency, LeafCheck, Limit, Measurement, Memory, Run, Stage

_DONE: Stage = "done"
_OF_MEASUREMENT = ("mapper", "mode", "outcome", "stage", "first_call_s")
# Field of a part of a measurement → the part.
_PART_OF = {
    field: name
    for name, part in (("latency", Latency), ("memory", Memory), ("correctness", Correctness))
    for field in part.__struct_fields__
}


@dataclass(frozen=True)
class Row:
    """A strategy with everything that is shown of it, in seconds and bytes.

    What its measurement says has the same names here: the row's ``median_s`` and ``peak_bytes`` are those of its
    latency and its memory, and None where there is none. Of the run beside it: ``rank`` is shared by ties and None
    where a strategy has no rank; ``tie`` numbers the tie group it stands in, and ``tied`` is true where it is not alone
    there. ``factor``: baseline's latency over its own; ``default_s``: latency with the machine's default allocator;
    ``first_low_s`` and ``first_high_s``: the interval of its first call.
    """

    measurement: Measurement
    order: int = 0
    rank: int | None = None
    tie: int | None = None
    tied: bool = False
    factor: float | None = None
    factor_low: float | None = None
    factor_high: float | None = None
    first_low_s: float | None = None
    first_high_s: float | None = None
    default_s: float | None = None
    limit: Limit | None = None
    finished: bool = True

    def __getattr__(self, name: str) -> Any:
        if name in _OF_MEASUREMENT:
            return getattr(self.measurement, name)
        if name not in _PART_OF:
            raise AttributeError(name)
        value = getattr(getattr(self.measurement, _PART_OF[name]), name, None)
        return None if value is UNSET else value

    @property
    def slug(self) -> str:
        return self.measurement.strategy

    @property
    def max_of_scale(self) -> float | None:
        """The largest error relative to the scale of the right values."""
        check = self.measurement.correctness
        return max(filter(None, map(_of_scale, check.leaves)), default=check.max_abs) if check else None

    @property
    def label(self) -> str:
        """Its name with the shape of its mode."""
        return text.label(self.slug, self.mode)

    @property
    def sentence(self) -> str:
        """Why it ended as it did; empty where nothing went wrong."""
        return self.measurement.error.message if self.measurement.error else ""

    @property
    def of_limit(self) -> float | None:
        """Its latency over the limit of the run."""
        return limit.multiple(self.measurement)

    @property
    def failed(self) -> bool:
        """True if it ended in a way that a person wants explained: whoever cancelled knows why."""
        return self.outcome not in ("ok", "not_run", "cancelled")

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of its latency's interval; None where it is not timed."""
        return None if self.low_s is None else (self.low_s, self.high_s)

    @property
    def samples(self) -> int:
        return sum(len(replica.samples_s) for replica in self.measurement.replicas)

    @property
    def status(self) -> str:
        """Its outcome in a word; while the run goes on, a strategy without one yet has its stage."""
        if not self.finished and self.outcome == "not_run" and self.stage not in ("", _DONE):
            return str(self.stage)
        return text.OUTCOMES.get(self.outcome, self.outcome)


def outcome(item: Measurement) -> str:
    """An outcome in a few words, with its reason where it is not ``ok``."""
    word = item.outcome.replace("_", " ")
    return f"{word}: {item.error.message}" if item.error is not None else word


def _of_scale(leaf: LeafCheck) -> float | None:
    """The largest error of a leaf relative to the root mean square of its right values, by which its tolerance is
    scaled; where the workload has a tolerance of its own, relative to the value itself."""
    allowed = leaf.tolerance
    if leaf.max_abs is None or "reason" in allowed or not (allowed.get("relative") and allowed.get("absolute")):
        return leaf.max_rel
    return leaf.max_abs * float(allowed["relative"]) / float(allowed["absolute"])


def strategies_of(run: Run) -> list[Measurement]:
    """The run's measurements without the control's twin."""
    return [measurement for measurement in run.measurements if measurement.twin_of is None]


def baselines(run: Run) -> list[Measurement]:
    """The strategies that others may be compared with: timed, and right."""
    return [m for m in strategies_of(run) if m.latency is not None and m.outcome == "ok"]


def choose_baseline(run: Run, *wanted: str | None) -> str | None:
    """The strategy that others are compared with: the first of ``wanted`` that can be it, else `USUAL`, else the
    slowest; None where nothing is timed."""
    timed = {m.strategy: m.latency.median_s for m in baselines(run) if m.latency is not None}
    for slug in (*wanted, *USUAL):
        if slug in timed:
            return slug
    return max(timed, key=lambda slug: timed[slug]) if timed else None


def ranked_first(run: Run) -> list[Measurement]:
    """The measurements without the control's twin: ranked ones first, then the others as they were asked for."""
    place = {slug: index for index, slug in enumerate(slug for group in run.ranking for slug in group)}
    return sorted(strategies_of(run), key=lambda m: place.get(m.strategy, len(place)))


def listed(run: Run) -> list[Row]:
    """The rows of a run, `ranked_first`, without a baseline."""
    rank, defaults = ranks(run.ranking), default_memory.timed(run)
    tie = {slug: number for number, group in enumerate(run.ranking) for slug in group}
    return [
        Row(
            item,
            order,
            rank.get(item.strategy),
            tie.get(item.strategy),
            item.strategy in tie and len(run.ranking[tie[item.strategy]]) > 1,
            default_s=defaults[item.strategy].seconds if item.strategy in defaults else None,
            limit=run.limit,
            finished=run.finished is not None,
        )
        for order, item in enumerate(ranked_first(run))
    ]


def make(run: Run, baseline: str | None = None) -> list[Row]:
    """The rows of a run, finished or not, with their factors against a baseline where both are timed: ranked ones, then
    wrong and unranked ones by latency, then the others."""
    levels, costs = shown_levels(run), break_even.costs(run)

    def position(row: Row) -> tuple[int, float]:
        if row.rank is not None or row.median_s is not None:
            return (0, 0.0) if row.rank is not None else (1, row.median_s)
        return (2 if row.outcome in ("ok", "not_run") else 3), 0.0

    shown = []
    for order, row in enumerate(sorted(listed(run), key=position)):
        row = replace(row, order=order)
        if row.slug in costs:
            row = replace(row, first_low_s=costs[row.slug].first.low_s, first_high_s=costs[row.slug].first.high_s)
        if baseline is not None and baseline in levels and row.slug in levels:
            of = intervals.ratio(levels[baseline], levels[row.slug], run.analysis.confidence)
            ends = (None, None) if row.slug == baseline else (of.low, of.high)  # its own has no interval
            row = replace(row, factor=of.ratio, factor_low=ends[0], factor_high=ends[1])
        shown.append(row)
    return shown
