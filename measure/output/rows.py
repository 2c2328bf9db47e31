"""One row for each strategy of a run: what charts, tables and figures are made of. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from measure.judge import default_memory, limit
from measure.judge.analysis import ranks
from measure.judge.default_memory import USUAL
from measure.model import text
from measure.model.run import Limit, Measurement, Run, Stage
from measure.statistics import break_even, intervals
from measure.statistics.intervals import Level
from measure.statistics.levels import shown_levels

_DONE: Stage = "done"


@dataclass(frozen=True)
class Row:
    """A strategy with everything that is shown of it. Seconds, bytes; ``factor``: baseline's latency over its own;
    ``default_s``: latency with the machine's default allocator.

    ``rank`` is shared by ties and None where a strategy has no rank; ``tie`` numbers the tie group it stands in, and
    ``tied`` is true where it is not alone there. ``limit`` is that of the run.
    """

    measurement: Measurement
    slug: str
    mapper: str
    mode: str
    outcome: str
    stage: str
    order: int
    rank: int | None = None
    tie: int | None = None
    tied: bool = False
    sentence: str = ""
    detail: str = ""
    notes: tuple[str, ...] = ()
    median_s: float | None = None
    typical_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    factor: float | None = None
    factor_low: float | None = None
    factor_high: float | None = None
    of_limit: float | None = None
    of_limit_note: str = ""
    first_call_s: float | None = None
    first_low_s: float | None = None
    first_high_s: float | None = None
    processes: int = 0
    samples: int = 0
    faults: float | None = None
    default_s: float | None = None
    peak_bytes: int | None = None
    output_bytes: int | None = None
    temporary_bytes: int | None = None
    input_bytes: int | None = None
    captured_bytes: int | None = None
    process_peak_bytes: int | None = None
    correct: bool | None = None
    max_abs: float | None = None
    max_rel: float | None = None
    max_ulp: float | None = None
    nan_mismatches: int = 0
    limit: Limit | None = None

    @property
    def label(self) -> str:
        """Its name with the shape of its mode."""
        return text.label(self.slug, self.mode)

    @property
    def failed(self) -> bool:
        """True if it ended in a way that a person wants explained: whoever cancelled knows why."""
        return self.outcome not in ("ok", "not_run", "cancelled")

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of its latency's interval; None where it is not timed."""
        if self.low_s is None or self.high_s is None:
            return None
        return self.low_s, self.high_s

    @property
    def status(self) -> str:
        """Its outcome in a word; a strategy without one yet has its stage."""
        if self.outcome == "not_run" and self.stage not in ("", _DONE):
            return self.stage
        return text.OUTCOMES.get(self.outcome, self.outcome)


def outcome(item: Measurement) -> str:
    """An outcome in a few words, with its reason where it is not ``ok``."""
    word = item.outcome.replace("_", " ")
    return f"{word}: {item.error.message}" if item.error is not None else word


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
    """The rows of a run without what only the page shows (factors, intervals of first calls), `ranked_first`."""
    places = _places(run)
    return [_row(m, order, run, places.get(m.strategy, {})) for order, m in enumerate(ranked_first(run))]


def make(run: Run, baseline: str | None = None) -> list[Row]:
    """The rows of a run, finished or not: ranked ones, then wrong and unranked ones by latency, then the others."""
    place = {slug: index for index, slug in enumerate(slug for group in run.ranking for slug in group)}
    places = _places(run)
    asked = {slug: index for index, slug in enumerate(run.request.strategies)}
    levels = shown_levels(run)
    costs = break_even.costs(run)

    def position(m: Measurement) -> tuple[int, float, int]:
        if m.strategy in place:
            return 0, place[m.strategy], 0
        if m.latency is not None:
            return 1, m.latency.median_s, 0
        kind = 2 if m.outcome in ("ok", "not_run") else 3
        return kind, 0.0, asked.get(m.strategy, len(asked))

    rows = []
    for order, m in enumerate(sorted(strategies_of(run), key=position)):
        cost = costs.get(m.strategy)
        row = replace(
            _row(m, order, run, places.get(m.strategy, {})),
            first_low_s=cost.first.low_s if cost else None,
            first_high_s=cost.first.high_s if cost else None,
        )
        rows.append(_against(row, baseline, levels, run.analysis.confidence))
    return rows


def _against(row: Row, baseline: str | None, levels: Mapping[str, Level], confidence: float) -> Row:
    """The row with its factor against the baseline, where both are timed; the baseline's own has no interval."""
    if baseline is None or baseline not in levels or row.slug not in levels:
        return row
    ratio = intervals.ratio(levels[baseline], levels[row.slug], confidence)
    if row.slug == baseline:
        return replace(row, factor=ratio.ratio)
    return replace(row, factor=ratio.ratio, factor_low=ratio.low, factor_high=ratio.high)


def _places(run: Run) -> dict[str, dict[str, Any]]:
    """Each ranked strategy's rank, the number of its tie group, and whether it has company there; the latency of those
    that were timed with the default allocator too."""
    rank = ranks(run.ranking)
    places: dict[str, dict[str, Any]] = {
        slug: {"rank": rank[slug], "tie": number, "tied": len(group) > 1}
        for number, group in enumerate(run.ranking)
        for slug in group
    }
    for slug, known in default_memory.timed(run).items():
        places[slug] = places.get(slug, {}) | {"default_s": known.seconds}
    return places


def _row(m: Measurement, order: int, run: Run, place: Mapping[str, Any]) -> Row:
    latency, memory, check = m.latency, m.memory, m.correctness
    return Row(
        measurement=m,
        slug=m.strategy,
        mapper=m.mapper,
        mode=m.mode,
        outcome=m.outcome,
        stage=m.stage,
        order=order,
        **place,
        sentence=m.error.message if m.error else "",
        detail=m.error.detail if m.error else "",
        notes=tuple(warning.message for warning in m.warnings),
        median_s=latency.median_s if latency else None,
        typical_s=(latency.typical_s or None) if latency else None,
        low_s=latency.low_s if latency else None,
        high_s=latency.high_s if latency else None,
        of_limit=limit.multiple(m),
        of_limit_note=limit.note(m),
        first_call_s=m.first_call_s,
        processes=sum(bool(replica.samples_s) for replica in m.replicas),
        samples=sum(len(replica.samples_s) for replica in m.replicas),
        faults=limit.page_faults(m),
        peak_bytes=memory.peak_bytes if memory else None,
        output_bytes=memory.output_bytes if memory else None,
        temporary_bytes=memory.temporary_bytes if memory else None,
        input_bytes=memory.input_bytes if memory else None,
        captured_bytes=memory.captured_bytes if memory else None,
        process_peak_bytes=memory.process_peak_bytes if memory else None,
        correct=check.ok if check else None,
        max_abs=check.max_abs if check else None,
        max_rel=check.max_rel if check else None,
        max_ulp=check.max_ulp if check else None,
        nan_mismatches=check.nan_mismatches if check else 0,
        limit=run.limit,
    )
