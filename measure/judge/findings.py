"""All that is said of a comparison, made once: who leads, how far, how sure that is, who is missing, row by row.

Sentences, tables, charts and exports read it, so that no two of them can differ. Pure functions of a run.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar, cast

from msgspec import UNSET

from measure.judge import warnings
from measure.judge.levels import (
    Level,
    Levels,
    Order,
    Pairs,
    Ratio,
    has_samples,
    levels_of,
    ranks,
    ratio,
    shown_levels,
    slices_of,
)
from measure.run import text
from measure.run.run import TIME_OVER, Analysis, LeafCheck, Limit, Measurement, Run

# How sure it is which strategy to take. A run that is "too noisy" or "too short" has no order.
Word = Literal["clear", "tie", "cannot tell", "too noisy", "too short", "no choice", "nothing"]
_NO_ORDER: tuple[Word, ...] = ("too noisy", "too short")

# A tie within more than this share says less of the strategies than of the run; within more than the second, nothing.
TELLING, NOTHING_TOLD = 0.25, 1.0
# Peaks of memory that differ by less than this share are alike.
ALIKE = 0.01
# Baselines: the usual choices without a measurement, TensorFlow's own name for a map first.
USUAL = ("map_fn.graph", "loop.eager")

_SINGLE = "it was timed in a single process"
# One of two samples may be this many times too long. A strategy that is slower than that is not the fastest.
_FAR = 3.0

_T = TypeVar("_T")


class Figure(Generic[_T]):
    """A part of a row by its path, in seconds and bytes; None where something on the path is not known."""

    def __init__(self, path: str) -> None:
        self._names = path.split(".")

    def __get__(self, row: "Row", owner: type | None = None) -> _T:
        value: Any = row
        for name in self._names:
            value = None if value is None else getattr(value, name)
        return cast(_T, None if value is UNSET else value)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A strategy with what its run says of it.

    ``rank`` is shared by ties; ``tie`` numbers the tie group it stands in, and ``tied`` is true where it is not alone
    there: None and false where no order is said. ``factor``: the baseline's latency over its own. ``default``: its
    twin with the machine's default memory. ``limit``: of the run.
    """

    measurement: Measurement
    rank: int | None = None
    tie: int | None = None
    tied: bool = False
    factor: Ratio | None = None
    default: Measurement | None = None
    limit: Limit | None = None
    running: bool = False

    slug = Figure[str]("measurement.strategy")
    mapper = Figure[str]("measurement.mapper")
    mode = Figure[str]("measurement.mode")
    outcome = Figure[str]("measurement.outcome")
    median_s = Figure[float | None]("measurement.latency.median_s")
    low_s = Figure[float | None]("measurement.latency.low_s")
    high_s = Figure[float | None]("measurement.latency.high_s")
    first_call_s = Figure[float | None]("measurement.first_call_s")
    default_s = Figure[float | None]("default.latency.median_s")
    # The latency over the limit of the run, at least 1, for probes cannot tell what is a little below from it.
    of_limit = Figure[float | None]("measurement.why.times_limit")
    peak_bytes = Figure[int | None]("measurement.memory.peak_bytes")
    output_bytes = Figure[int | None]("measurement.memory.output_bytes")
    temporary_bytes = Figure[int | None]("measurement.memory.temporary_bytes")
    process_peak_bytes = Figure[int | None]("measurement.memory.process_peak_bytes")
    ok = Figure[bool | None]("measurement.correctness.ok")
    sentence = Figure[str]("measurement.reason")

    @property
    def status(self) -> str:
        """Its outcome in a word; while the run goes on, a strategy without one yet has its stage."""
        if self.running and self.outcome == "not_run" and self.measurement.stage not in ("", "done"):
            return self.measurement.stage
        return text.outcome(self.outcome)

    @property
    def failed(self) -> bool:
        """True if it ended in a way that a person wants explained: whoever cancelled knows why."""
        return self.outcome not in ("ok", "not_run", "cancelled")

    @property
    def interval(self) -> tuple[float, float] | None:
        latency = self.measurement.latency
        return (latency.low_s, latency.high_s) if latency else None

    @property
    def latency(self) -> str:
        """``0.73 ms``: with the digits that its interval carries; ``~0.7 ms`` where it was not timed."""
        if self.rough_s is not None:
            return f"~{text.seconds(self.rough_s, 1)}"
        return text.MISSING if self.interval is None else text.seconds(self.median_s, text.digits(*self.interval))

    @property
    def max_of_scale(self) -> float | None:
        """The largest error relative to the scale of the right values."""
        check = self.measurement.correctness
        return max(filter(None, map(_of_scale, check.leaves)), default=check.max_abs) if check else None

    @property
    def processes(self) -> int:
        """The number of its processes that were sampled."""
        return slices_of(self.measurement)[0]

    @property
    def rough_s(self) -> float | None:
        """Seconds of a call as the process that measures memory had it, where the strategy was not timed."""
        return None if self.median_s is not None else self.measurement.rough_s or None

    @property
    def samples(self) -> int:
        return sum(len(replica.samples_s) for replica in self.measurement.replicas)


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The findings of a comparison, finished or not.

    ``levels``: of strategies with enough samples for a ratio, twins included. ``baseline`` is what ratios are relative
    to, also where it has none. ``rows`` are in the order of the latency shown: right ones, wrong ones, then those
    without a latency. ``leaders`` may all be the fastest, the one to take first; ``following`` is the fastest of those
    behind them. ``missing`` have too few samples, or none, and may be faster than all. ``apart``: the share of their
    latency that leaders differ by at most, or of a single one the smallest detectable difference; None where it is
    not known. ``reason``: why they cannot be told apart.
    """

    run: Run
    levels: Mapping[str, Level]
    baseline: str | None
    rows: Sequence[Row]
    leaders: Sequence[Row]
    following: Row | None
    missing: Sequence[str]
    apart: float | None
    word: Word
    reason: str

    @property
    def tells(self) -> bool:
        """False where no order is said."""
        return self.word not in (*_NO_ORDER, "nothing")

    @property
    def is_usable(self) -> bool:
        """True where nothing has to be measured again."""
        return self.word in ("clear", "tie", "no choice")

    @property
    def take(self) -> Row | None:
        """The strategy to take; None where nothing can be told."""
        return self.leaders[0] if self.tells else None

    @property
    def ranked(self) -> list[Row]:
        """The rows with a rank, fastest first."""
        return [row for row in self.rows if row.rank is not None]

    @property
    def baseline_problem(self) -> str:
        """Why there is no speedup, as a clause; empty where there is."""
        if self.baseline is None or any(row.factor for row in self.rows):
            return ""
        row = self.row(self.baseline)
        if row.median_s is None:
            return f"{self.baseline} {'failed' if row.failed else 'was not timed'}"
        return f"{self.baseline} {'has too few samples' if row.outcome == 'ok' else 'is wrong'}"

    def row(self, slug: str) -> Row:
        return next(row for row in self.rows if row.slug == slug)

    def ratio(self, slower: str, faster: str) -> Ratio | None:
        """Latency of the one over that of the other, twins among them; None where one has no samples."""
        return _ratio(self.run, self.levels, slower, faster)


def findings(run: Run, *baselines: str | None, levels: Levels | None = None) -> Findings:
    """The findings of a comparison that was analysed. ``baselines``: the first that the run has is the baseline, else
    the first of `USUAL`, else the first strategy of the run, whether it was timed well or not. ``levels``: of its
    strategies, where they are made already."""
    if levels is None and run.analysis.version == Analysis().version:
        levels = levels_of(run.measurements, run.analysis)
    of_slugs, deviation = (levels.by_slug, levels.spread.deviation) if levels else (shown_levels(run), None)
    is_point = run.analysis.spread is not UNSET  # whose processes are pooled over a sweep
    enough = {item.strategy for item in run.measurements if is_point or has_samples(item)}
    of_slugs = {slug: level for slug, level in of_slugs.items() if slug in enough}
    own = [item.strategy for item in strategies_of(run)]
    baseline = next((slug for slug in (*baselines, *USUAL, *own) if slug in own), None)
    is_right = any(item.strategy == baseline and item.outcome == "ok" for item in run.measurements)
    rows = _rows(run, of_slugs, baseline if is_right else None)
    by_slug = {row.slug: row for row in rows}
    first = run.ranking[0] if run.ranking else []
    # In a file from elsewhere, who leads may be missing.
    leaders = [by_slug[slug] for slug in first if slug in by_slug and by_slug[slug].interval]
    leading = {row.slug for row in leaders}
    fastest_s = min((row.median_s for row in leaders if row.median_s), default=0.0)
    missing = [
        row.slug for row in rows
        if row.slug not in leading and (
            may_lead(row.measurement) or (row.slug not in enough and _may_be_faster(row.measurement, fastest_s))
        )
    ]  # fmt: skip
    apart = _apart(run, leaders, of_slugs)
    word, reason = _word(run, leaders, missing, apart, deviation)
    unranked = by_slug.keys() if word in _NO_ORDER else {*missing}
    rows = [replace(row, rank=None, tie=None, tied=False) if row.slug in unranked else row for row in rows]
    following = next((row for row in rows if row.rank is not None and row.tie), None)
    return Findings(
        run=run, levels=of_slugs, baseline=baseline, rows=rows, leaders=leaders, following=following, missing=missing,
        apart=apart, word=word, reason=reason,
    )  # fmt: skip


def open_question(of: Findings, equal: float = math.inf) -> str:
    """Return what more samples may still answer, as a sentence without its end; empty where the answer is usable.
    ``equal``: a tie is an answer where its medians differ by no more than this share."""
    can_be_timed = [row for row in of.rows if row.outcome in ("ok", "not_run") and row.slug not in of.levels]
    if of.missing:
        verb = "is" if len(of.missing) == 1 else "are"
        return f"{text.listed(of.missing, 2)} {verb} not timed yet"
    if any(row.slug == of.baseline for row in can_be_timed):
        return f"{of.baseline} needs more samples"
    if of.word in ("clear", "no choice", "nothing"):
        return ""
    medians_s = [row.median_s for row in of.leaders if row.median_s]
    if of.word == "tie" and max(medians_s) <= (1 + equal) * min(medians_s):
        return ""
    many = f"{text.counted(len(of.leaders), 'strategy', 'strategies')} may be the fastest"
    return many if of.tells else "samples are too noisy"


# --- rows ------------------------------------------------------------------------------------------------------------


def strategies_of(run: Run) -> list[Measurement]:
    """The run's measurements without twins."""
    return [item for item in run.measurements if item.twin_of is None]


def _rows(run: Run, levels: Mapping[str, Level], baseline: str | None) -> list[Row]:
    rank, tie = ranks(run.ranking), {slug: number for number, group in enumerate(run.ranking) for slug in group}
    twins = (item for item in run.measurements if item.has_default_memory)
    defaults = {item.twin_of: item for item in twins if item.outcome == "ok" and item.latency}

    def position(item: Measurement) -> tuple[int, float]:
        if item.latency is not None:
            return int(item.strategy not in rank), item.latency.median_s
        return (2 if item.outcome in ("ok", "not_run") else 3), 0.0

    items = {item.strategy: item for item in sorted(strategies_of(run), key=position)}
    return [
        Row(
            measurement=item, rank=rank.get(slug), tie=tie.get(slug),
            tied=slug in tie and len(run.ranking[tie[slug]]) > 1,
            factor=_ratio(run, levels, baseline, slug) if baseline else None, default=defaults.get(slug),
            limit=run.limit, running=run.finished is None,
        )
        for slug, item in items.items()
    ]  # fmt: skip


def _ratio(run: Run, levels: Mapping[str, Level], slower: str, faster: str) -> Ratio | None:
    if slower not in levels or faster not in levels:
        return None
    return ratio(levels[slower], levels[faster], run.analysis.confidence)


def _of_scale(leaf: LeafCheck) -> float | None:
    """The largest error of a leaf relative to the root mean square of its right values, by which its tolerance is
    scaled; where the workload has a tolerance of its own, relative to the value itself."""
    # A file from elsewhere may have anything there.
    relative, absolute = (
        share if isinstance(share := leaf.tolerance.get(name), int | float) else 0.0
        for name in ("relative", "absolute")
    )
    if leaf.max_abs is None or "reason" in leaf.tolerance or not (relative and absolute):
        return leaf.max_rel
    return leaf.max_abs * relative / absolute


# --- who leads, and how sure that is ---------------------------------------------------------------------------------


def may_lead(item: Measurement) -> bool:
    """True of what was not timed where nothing says that it could not be the fastest: no failure, no wrong values, and
    no forecast that left it out."""
    # Of what has ended in time once, a process that no longer answers may have been held up.
    held_up = item.outcome == "timeout" and item.memory is not None
    no_time = item.outcome == "not_run" and (item.error is None or item.error.type == TIME_OVER)
    return held_up or no_time or item.outcome == "cancelled"


def _may_be_faster(item: Measurement, fastest_s: float) -> bool:
    """True of a strategy with too few samples for a ratio, none of which is far slower than ``fastest_s``: other
    programs make samples longer, never shorter."""
    samples_s = [sample_s for replica in item.replicas for sample_s in replica.samples_s]
    return item.outcome == "ok" and min(samples_s, default=math.inf) < _FAR * fastest_s


def _apart(run: Run, leaders: Sequence[Row], levels: Mapping[str, Level]) -> float | None:
    """The farthest end of any two leaders' ratio from 1, and no less than the run's resolution and the margin: the run
    had no reason to look closer at what is within that."""
    share = max(run.control.resolution if run.control else 0.0, run.analysis.margin)
    if any(row.slug not in levels for row in leaders):
        return None
    if len(leaders) < 2:
        return max(share, Order(_ranked(run, levels), run.analysis).resolution)
    pairs = Pairs([levels[row.slug] for row in leaders], run.analysis.confidence)
    rows = map(pairs.behind, range(len(leaders) - 1))
    return max(share, math.expm1(max(float((abs(logs) + halves)[1:].max()) for logs, halves in rows)))


def _ranked(run: Run, levels: Mapping[str, Level]) -> dict[str, Level]:
    return {slug: levels[slug] for group in run.ranking for slug in group if slug in levels}


def _word(
    run: Run, leaders: Sequence[Row], missing: Sequence[str], apart: float | None, deviation: float | None
) -> tuple[Word, str]:
    """How sure the verdict is, by one rule for all runs, and why it is not clearer."""
    if not leaders:
        return "nothing", ""
    if apart is None:
        return "too short", text.listed([row.slug for row in leaders if not has_samples(row.measurement)], 2)
    noise = _noise(run, deviation)
    if apart > NOTHING_TOLD:
        return "too noisy", noise
    if missing:
        return "cannot tell", ""
    if sum(map(len, run.ranking)) == 1:
        return "no choice", ""
    if len(leaders) == 1:
        return ("cannot tell", _SINGLE) if leaders[0].processes < 2 else ("clear", "")
    return ("cannot tell", noise) if apart > TELLING else ("tie", "")


def _noise(run: Run, deviation: float | None) -> str:
    """Why a run cannot tell its leaders apart: other programs, as their load was counted, or else its own samples."""
    codes = {warning.code: warning.values for warning in run.warnings}
    for values in (codes[code] for code in warnings.NOISE if code in codes):
        cores, granted = values.get("cores"), run.environment.get("cores_granted")
        if not isinstance(cores, int | float):
            return "a limit on processor time held it"
        of = f" of {granted:.3g}" if isinstance(granted, int | float) else ""
        return f"other programs used {cores:.1f}{of} cores"
    if deviation is None:
        return "its intervals are wide"
    return f"processes of one strategy differ by {text.percent(deviation)}"


def front(of: Findings) -> list[list[Row]]:
    """The ranked rows that no other beats in one of latency and memory without losing in the other: one list for each
    tie, the fastest first. Latencies tie as ranks do, and peaks within `ALIKE` are alike."""
    ties = dict[int, list[tuple[int, Row]]]()
    for row in of.ranked:
        if row.rank is not None and row.peak_bytes is not None:
            ties.setdefault(row.rank, []).append((row.peak_bytes, row))
    unbeaten, least = list[list[Row]](), math.inf
    for _, tied in sorted(ties.items()):
        fewest = min(peak_bytes for peak_bytes, _ in tied)
        if fewest < (1 - ALIKE) * least:
            unbeaten.append([row for peak_bytes, row in tied if (1 - ALIKE) * peak_bytes <= fewest])
            least = fewest
    return unbeaten
