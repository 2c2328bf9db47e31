"""Two comparisons beside each other, strategy by strategy: what changed in latency, rank, memory and values, and what
differs between what was asked and where it was measured. Pure functions of two runs.

A machine's pace moves all latencies of a run alike. So a change is judged by what it is *relative to a baseline* that
both runs have: whether that ratio differs between them is Student's t on logarithms, as within a run.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from measure.judge import warnings
from measure.judge.findings import USUAL, Findings, Row, findings
from measure.judge.levels import Level, difference, relative
from measure.machine import environment
from measure.run import text
from measure.run.run import Run

# Half of a normal 95% CI, in standard deviations.
_NORMAL_95 = 1.96


@dataclass(frozen=True, kw_only=True)
class Change:
    """A strategy in both runs: its rows, None where a run does not have it. ``times``: the logarithm of its latency in
    the second over that in the first, the pace of the machines included; ``relative``: the same of its latency over the
    baseline's. Both None where it was not timed twice; ``relative`` also of the baseline itself."""

    strategy: str
    before: Row | None
    after: Row | None
    times: Level | None = None
    relative: Level | None = None

    @property
    def same_code(self) -> bool:
        """True if both runs have executed the same script."""
        codes = [row.measurement.code for row in (self.before, self.after) if row is not None]
        return len(codes) == 2 and None not in codes and len({code.sha256 for code in codes if code}) == 1


@dataclass(frozen=True, kw_only=True)
class Pair:
    """``baseline``: timed and right in both runs, None where there is none. ``facts``: the name of what differs, with
    its value in the first and in the second run."""

    first: Findings
    second: Findings
    baseline: str | None
    changes: Sequence[Change]
    facts: Sequence[tuple[str, str, str]]

    @property
    def names(self) -> tuple[str, str]:
        """The runs by time: ``earlier`` and ``later``."""
        one, other = (datetime.fromisoformat(of.run.created) for of in (self.first, self.second))
        return ("earlier", "later") if one <= other else ("later", "earlier")

    @property
    def confidence(self) -> float:
        """Of each interval, so that all hold together with that of the first run (Bonferroni)."""
        count = sum(change.relative is not None for change in self.changes)
        return 1 - (1 - self.first.run.analysis.confidence) / max(1, count)


def of(first: Run, second: Run, baseline: str | None = None) -> Pair:
    """The second comparison beside the first. ``baseline``: a strategy, else the first of `USUAL` that both have, else
    the first run's leader, else the slowest of both. Raises ValueError with a sentence where they cannot be compared.
    """
    for run in (first, second):
        if run.kind != "compare":
            raise ValueError(f"run {run.id} is a {run.kind}: two comparisons can be put beside each other")
    then, now = findings(first), findings(second)
    before, after = ({row.slug: row for row in of.rows} for of in (then, now))
    if not (both := [slug for slug in before if slug in after]):
        raise ValueError(f"runs {first.id} and {second.id} have no strategy in common")
    right = [slug for slug in both if all(of.row(slug).outcome == "ok" and slug in of.levels for of in (then, now))]
    wanted = (baseline,) if baseline else (*USUAL, *(row.slug for row in then.leaders), *reversed(right))
    reference = next((slug for slug in wanted if slug in right), None)
    if baseline and reference is None:
        raise ValueError(f"{baseline} is not timed and right in both runs: {text.listed(right) or 'none'} is")
    changes = [
        Change(
            strategy=slug, before=before.get(slug), after=after.get(slug),
            times=_times(before.get(slug), after.get(slug)), relative=_relative(then, now, slug, reference),
        )
        for slug in dict.fromkeys((*after, *before))
    ]  # fmt: skip
    return Pair(first=then, second=now, baseline=reference, changes=changes, facts=_facts(first, second))


def has_changed(then: Findings, now: Findings, slug: str, baseline: str | None, confidence: float) -> bool:
    """True if a latency, relative to the baseline's, differs between two runs beyond chance, and by more than either
    can tell."""
    if (change := _relative(then, now, slug, baseline)) is None:
        return False
    low, high = change.interval(confidence)
    resolution = max((of.run.control.resolution for of in (then, now) if of.run.control is not None), default=0.0)
    return not low <= 1 <= high and abs(change.log_mean) > math.log1p(resolution)


def _times(before: Row | None, after: Row | None) -> Level | None:
    """The change of the latencies as they are shown, whose intervals hold the pace of the machine."""
    then, now = (row.measurement.latency if row else None for row in (before, after))
    if then is None or now is None:
        return None
    half = math.hypot(*(math.log(one.high_s / one.low_s) / 2 for one in (then, now)))
    return Level(math.log(now.median_s / then.median_s), (half / _NORMAL_95) ** 2, math.inf)


def _relative(then: Findings, now: Findings, slug: str, baseline: str | None) -> Level | None:
    if baseline in (None, slug) or any(name not in of.levels for name in (slug, baseline) for of in (then, now)):
        return None
    before, after = (relative(of.levels[slug], of.levels[str(baseline)]) for of in (then, now))
    return difference(after, before)


def _facts(first: Run, second: Run) -> list[tuple[str, str, str]]:
    """What differs in what was asked, and then in where it was measured."""
    facts = [(name, one, other) for (name, one), (_, other) in zip(_asked(first), _asked(second), strict=True)]
    codes = [run.request.own.given.code if run.request.own else "" for run in (first, second)]
    facts.append(("function", "its code", "its code" if codes[0] == codes[1] else "other code"))
    load, shown = environment.LOAD_OF_OTHERS, environment.shown
    one, other = (run.environment | {load: _load(run)} for run in (first, second))
    # Load never repeats exactly: only a difference that would raise a warning matters.
    is_near = abs(one[load] - other[load]) <= warnings.BUSY_CORES
    keys = [key for key in dict.fromkeys((*one, *other)) if key != load or not is_near]
    facts += [(environment.label(key), shown(key, one.get(key)), shown(key, other.get(key))) for key in keys]
    # A run made elsewhere may hold anything: a terminal obeys none of it.
    plain = [[text.COMMANDS.sub("", " ".join(words.split())) for words in fact] for fact in facts]
    return [(name, one, other) for name, one, other in plain if one != other]


def _load(run: Run) -> float:
    """Return the most cores that other programs used before or while latencies were sampled."""
    seen = [run.environment.get(environment.LOAD_OF_OTHERS), *(one.values.get("cores") for one in run.warnings)]
    return max((cores for cores in seen if isinstance(cores, int | float)), default=0.0)


def _asked(run: Run) -> list[tuple[str, str]]:
    request, limit_mib = run.request, run.request.memory_limit_mib
    sizes, options = (
        ", ".join(f"{name} {value}" for name, value in values.items()) or text.MISSING
        for values in (request.size, request.workload_options)
    )
    return [
        ("workload", request.title), ("dtype", request.dtype), ("device", request.place), ("seed", str(request.seed)),
        ("size", sizes), ("options", options), ("threads", str(request.threads or text.MISSING)),
        ("memory limit", f"{limit_mib:,} MiB" if limit_mib else text.MISSING),
        ("memory from", request.allocator or "default"), ("budget", f"{request.budget_s:g} s"),
    ]  # fmt: skip
