"""All that is said of a comparison, made once: who leads, how far, how sure that is, who is missing, row by row.

Sentences, tables, charts and exports read it, so that no two of them can differ. Pure functions of a run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

from msgspec import UNSET

from measure.judge import default_memory, intervals, limit, warnings
from measure.judge.default_memory import USUAL, Default
from measure.judge.intervals import Level, Ratio
from measure.judge.levels import Levels, levels_of, shown_levels
from measure.judge.ranking import ranks
from measure.run import text
from measure.run.run import TIME_OVER, Analysis, LeafCheck, Measurement, Run, Stage

# How sure it is which strategy to take. Of a run that is «too noisy» or «too short», no order is said.
Word = Literal["clear", "tie", "cannot tell", "too noisy", "too short", "no choice", "nothing"]
_NO_ORDER: tuple[Word, ...] = ("too noisy", "too short")

# A tie within more than this share says less of the strategies than of the run; within more than the second, nothing.
TELLING, NOTHING_TOLD = 0.2, 1.0
# Peaks of memory that differ by less than this share are alike.
ALIKE = 0.01
_DONE: Stage = "done"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A strategy with what its run says of it, in seconds and bytes; None where that is not known.

    ``rank`` is shared by ties; ``tie`` numbers the tie group it stands in, and ``tied`` is true where it is not alone
    there: None and false where no order is said. ``factor``: the baseline's latency over its own. ``default``: its
    figures with the default allocator. ``limit_s``: the least time of a call, by the run's limit, and the roof that
    sets it.
    """

    measurement: Measurement
    order: int = 0
    rank: int | None = None
    tie: int | None = None
    tied: bool = False
    factor: float | None = None
    factor_low: float | None = None
    factor_high: float | None = None
    default: Default | None = None
    limit_s: float | None = None
    limit_term: str | None = None
    running: bool = False

    @property
    def slug(self) -> str:
        return self.measurement.strategy

    @property
    def mapper(self) -> str:
        return self.measurement.mapper

    @property
    def mode(self) -> str:
        return self.measurement.mode

    @property
    def label(self) -> str:
        """Its name with the shape of its mode."""
        return text.label(self.slug, self.mode)

    @property
    def outcome(self) -> str:
        return self.measurement.outcome

    @property
    def status(self) -> str:
        """Its outcome in a word; while the run goes on, a strategy without one yet has its stage."""
        if self.running and self.outcome == "not_run" and self.measurement.stage not in ("", _DONE):
            return self.measurement.stage
        return text.OUTCOMES.get(self.outcome, self.outcome)

    @property
    def failed(self) -> bool:
        """True if it ended in a way that a person wants explained: whoever cancelled knows why."""
        return self.outcome not in ("ok", "not_run", "cancelled")

    @property
    def sentence(self) -> str:
        """The reason why it ended as it did; empty where nothing went wrong."""
        return self.measurement.error.message if self.measurement.error else ""

    @property
    def interval(self) -> tuple[float, float] | None:
        latency = self.measurement.latency
        return (latency.low_s, latency.high_s) if latency else None

    @property
    def median_s(self) -> float | None:
        return self.measurement.latency.median_s if self.measurement.latency else None

    @property
    def latency(self) -> str:
        """``0.73 ms``: with the digits that its interval carries."""
        return text.MISSING if self.interval is None else text.seconds(self.median_s, text.digits(*self.interval))

    @property
    def low_s(self) -> float | None:
        return self.measurement.latency.low_s if self.measurement.latency else None

    @property
    def high_s(self) -> float | None:
        return self.measurement.latency.high_s if self.measurement.latency else None

    @property
    def typical_s(self) -> float | None:
        latency = self.measurement.latency
        return latency.typical_s if latency and latency.typical_s is not UNSET else None

    @property
    def first_call_s(self) -> float | None:
        return self.measurement.first_call_s

    @property
    def of_limit(self) -> float | None:
        """Its latency over the limit of the run."""
        return limit.multiple(self.measurement)

    @property
    def peak_bytes(self) -> int | None:
        return self.measurement.memory.peak_bytes if self.measurement.memory else None

    @property
    def output_bytes(self) -> int | None:
        return self.measurement.memory.output_bytes if self.measurement.memory else None

    @property
    def temporary_bytes(self) -> int | None:
        return self.measurement.memory.temporary_bytes if self.measurement.memory else None

    @property
    def process_peak_bytes(self) -> int | None:
        return self.measurement.memory.process_peak_bytes if self.measurement.memory else None

    @property
    def ok(self) -> bool | None:
        """True if its values agree with the reference, False if they do not."""
        return self.measurement.correctness.ok if self.measurement.correctness else None

    @property
    def max_of_scale(self) -> float | None:
        """The largest error relative to the scale of the right values."""
        check = self.measurement.correctness
        return max(filter(None, map(_of_scale, check.leaves)), default=check.max_abs) if check else None

    @property
    def processes(self) -> int:
        """The number of its processes that were sampled."""
        return sum(bool(replica.samples_s) for replica in self.measurement.replicas)

    @property
    def samples(self) -> int:
        return sum(len(replica.samples_s) for replica in self.measurement.replicas)


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The findings of a comparison, finished or not.

    ``rows`` are in the order of the latency shown: right ones, wrong ones, then those without a latency. ``leaders``
    may all be the fastest, the one to take first; ``following`` is the fastest of those behind them. ``missing`` were
    not timed and may be faster than all. ``apart``: the share of their latency that leaders differ by at the most, None
    where that is not known. ``reason``: why the word is no better one, for a sentence; empty of «clear».
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
    def take(self) -> Row | None:
        """The strategy to take; None where nothing can be told."""
        return self.leaders[0] if self.tells else None

    @property
    def ranked(self) -> list[Row]:
        """The rows with a rank, fastest first."""
        return [row for row in self.rows if row.rank is not None]

    def row(self, slug: str) -> Row:
        return next(row for row in self.rows if row.slug == slug)

    def ratio(self, slower: str, faster: str) -> Ratio | None:
        """Latency of the one over that of the other; None where one has no samples."""
        return _ratio(self.run, self.levels, slower, faster)

    def of_mode(self, mode: str) -> Row | None:
        """The fastest of a mode."""
        return next((row for row in self.ranked if row.mode == mode), None)

    @property
    def thriftiest(self) -> Row | None:
        """Of the ranked the one that needs the least memory, of several the fastest."""
        weighed = [row for row in self.ranked if row.peak_bytes is not None]
        return min(weighed, key=lambda row: row.peak_bytes or 0, default=None)


def findings(run: Run, *baselines: str | None, levels: Levels | None = None) -> Findings:
    """The findings of a comparison that was analysed. ``baselines``: the first of them that can be it is the baseline,
    else `USUAL`, else the slowest. ``levels``: of its strategies, where they are made already."""
    if levels is None and run.analysis.version == Analysis().version:
        levels = levels_of(run.measurements, run.analysis)
    of_slugs, deviation = (levels.by_slug, levels.spread.deviation) if levels else (shown_levels(run), None)
    baseline = _baseline(run, baselines)
    rows = _rows(run, of_slugs, baseline)
    by_slug = {row.slug: row for row in rows}
    first = run.ranking[0] if run.ranking else []
    leaders = [
        by_slug[slug] for slug in first if slug in by_slug and by_slug[slug].interval
    ]  # of a file from elsewhere
    apart, missing = _apart(run, leaders, of_slugs), unmeasured(run)
    word, reason = _word(run, leaders, missing, apart, deviation)
    if word in _NO_ORDER:
        rows = [replace(row, rank=None, tie=None, tied=False) for row in rows]
    return Findings(
        run=run,
        levels=of_slugs,
        baseline=baseline,
        rows=rows,
        leaders=leaders,
        following=next((row for row in rows if row.rank is not None and row.tie), None),
        missing=missing,
        apart=apart,
        word=word,
        reason=reason,
    )


# --- rows ------------------------------------------------------------------------------------------------------------


def strategies_of(run: Run) -> list[Measurement]:
    """The run's measurements without twins."""
    return [item for item in run.measurements if item.twin_of is None]


def baselines(run: Run) -> list[str]:
    """The strategies that others may be compared with: timed, and right."""
    return [item.strategy for item in strategies_of(run) if item.latency is not None and item.outcome == "ok"]


def _baseline(run: Run, wanted: Sequence[str | None]) -> str | None:
    timed = [item for item in strategies_of(run) if item.outcome == "ok"]
    able = {item.strategy: item.latency.median_s for item in timed if item.latency}
    slowest = max(able, key=lambda slug: able[slug], default=None)
    return next((slug for slug in (*wanted, *USUAL) if slug in able), slowest)


def _rows(run: Run, levels: Mapping[str, Level], baseline: str | None) -> list[Row]:
    rank, defaults = ranks(run.ranking), default_memory.timed(run, levels)
    tie = {slug: number for number, group in enumerate(run.ranking) for slug in group}

    def position(item: Measurement) -> tuple[int, float]:
        if item.latency is not None:
            return int(item.strategy not in rank), item.latency.median_s
        return (2 if item.outcome in ("ok", "not_run") else 3), 0.0

    rows = []
    for order, item in enumerate(sorted(strategies_of(run), key=position)):
        slug = item.strategy
        of = _ratio(run, levels, baseline, slug) if baseline else None
        ends = (of.low, of.high) if of and slug != baseline else (None, None)  # its own has no interval
        rows.append(
            Row(
                measurement=item,
                order=order,
                rank=rank.get(slug),
                tie=tie.get(slug),
                tied=slug in tie and len(run.ranking[tie[slug]]) > 1,
                factor=of.ratio if of else None,
                factor_low=ends[0],
                factor_high=ends[1],
                default=defaults.get(slug),
                limit_s=run.limit.seconds if run.limit else None,
                limit_term=run.limit.term if run.limit else None,
                running=run.finished is None,
            )
        )
    return rows


def _ratio(run: Run, levels: Mapping[str, Level], slower: str, faster: str) -> Ratio | None:
    if slower not in levels or faster not in levels:
        return None
    return intervals.ratio(levels[slower], levels[faster], run.analysis.confidence)


def _of_scale(leaf: LeafCheck) -> float | None:
    """The largest error of a leaf relative to the root mean square of its right values, by which its tolerance is
    scaled; where the workload has a tolerance of its own, relative to the value itself."""
    allowed = leaf.tolerance
    if leaf.max_abs is None or "reason" in allowed or not (allowed.get("relative") and allowed.get("absolute")):
        return leaf.max_rel
    return leaf.max_abs * float(allowed["relative"]) / float(allowed["absolute"])


# --- who leads, and how sure that is ---------------------------------------------------------------------------------


def unmeasured(run: Run) -> list[str]:
    """The strategies that were not timed, and of which nothing says that they could not be the fastest: no failure, no
    wrong values, and no forecast that left them out."""
    ranked = ranks(run.ranking)
    return [item.strategy for item in strategies_of(run) if item.strategy not in ranked and _may_lead(item)]


def _may_lead(item: Measurement) -> bool:
    # Of what has ended in time once, a process that no longer answers may have been held up.
    held_up = item.outcome == "timeout" and item.memory is not None
    no_time = item.outcome == "not_run" and (item.error is None or item.error.type == TIME_OVER)
    return held_up or no_time or item.outcome == "cancelled"


def _apart(run: Run, leaders: Sequence[Row], levels: Mapping[str, Level]) -> float | None:
    """The farthest end of any two leaders' ratio from 1, and no less than the run's resolution and the margin: the run
    had no reason to look closer at what is within that."""
    share = max(run.control.resolution if run.control else 0.0, run.analysis.margin)
    for a, b in combinations(leaders, 2):
        if (ratio := _ratio(run, levels, a.slug, b.slug)) is None:
            return None
        share = max(share, ratio.high - 1, 1 / ratio.low - 1)
    return share


def _word(
    run: Run, leaders: Sequence[Row], missing: Sequence[str], apart: float | None, deviation: float | None
) -> tuple[Word, str]:
    if not leaders:
        return "nothing", "no strategy was timed that computes the right values"
    single = any(row.processes < 2 for row in leaders)
    medians_s = [row.median_s for row in leaders if row.median_s is not None]
    # Of leaders that are near each other, and ahead of others, a run tells something, however wide its intervals are.
    nothing = len(run.ranking) == 1 or max(medians_s) > (1 + NOTHING_TOLD) * min(medians_s)
    if len(leaders) > 1 and apart is not None and apart > NOTHING_TOLD and nothing:
        reason, is_short = _noise(run, deviation, single=single)
        return "too short" if is_short else "too noisy", reason
    if missing:
        were = "was" if len(missing) == 1 else "were"
        return "cannot tell", f"{len(missing)} of {len(strategies_of(run))} {were} not timed"
    if sum(map(len, run.ranking)) == 1:
        return "no choice", "no other was asked for" if len(strategies_of(run)) == 1 else "no other has worked"
    if len(leaders) == 1:
        return ("cannot tell", "it was timed in a single process") if single else ("clear", "")
    if apart is None or apart > TELLING:
        return "cannot tell", _noise(run, deviation, single=single)[0]
    peaks = [row.peak_bytes for row in leaders if row.peak_bytes is not None]
    if len(peaks) == len(leaders) and min(peaks) < (1 - ALIKE) * max(peaks):
        return "tie", "it needs less memory than the others"
    return "tie", "all need the same memory"


def _noise(run: Run, deviation: float | None, *, single: bool) -> tuple[str, bool]:
    """Why a run cannot tell its leaders apart: others at work, as it was counted, or else its few processes; and True
    if that is for want of time."""
    codes = {warning.code: warning.values for warning in run.warnings}
    granted = run.environment.get("cores_granted")
    for values in (codes[code] for code in warnings.NOISE if code in codes):
        cores = values.get("cores")
        if not isinstance(cores, int | float):
            return "a limit on processor time held it", False
        of = f" of {granted:.3g}" if isinstance(granted, int | float) else ""
        return f"other programs used {cores:.1f}{of} cores", False
    if single:
        return "some were timed in a single process", True
    if deviation is None:
        return "its intervals are wide", False
    return f"processes of one strategy differ by {text.percent(deviation)}", False
