"""The run file `mapbench.run/1`: one typed document, the same in memory, in the store, in a download and in an import.

Everything that is shown can be recomputed from it. Times of day are ISO 8601 in UTC, and numbers that are not finite
become null. The bounds of the types keep what is read from stopping whoever shows it; no measurement comes near them.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, UnsetType

from measure.run.text import COMMANDS
from measure.run.why import Explained, Why
from workloads import functions

# Ends the name under which a strategy is timed once more, with the machine's default allocator in place of a pool.
DEFAULT_MEMORY = "#default"
# Ends the name under which a gate times the strategy of what it compares with, whose script may be another one.
BASE = "#base"
# A timeline with more points is no finer on a screen.
TIMELINE_POINTS = 500
MOST_STRATEGIES, MOST_SIZES = 1_000, 50
# Points of an axis, and of a sweep's grid, beside which as many may be refined.
MOST_POINTS, MOST_CELLS = 64, 400
# Measurements of all points of a sweep, by its axes: over one of them each pair of a point's may be compared.
MOST_MEASUREMENTS = {1: 100 * MOST_POINTS, 2: 75 * MOST_CELLS}

# The type of the error of a strategy for which there was no time.
TIME_OVER = "TimeOver"

Status = Literal["complete", "cancelled", "interrupted", "budget"]
Allocator = Literal["pool", "default"]
Term = Literal["memory-bound", "compute-bound", "dispatch-bound", ""]
PaysOff = Literal["calls", "from_first", "until", "never", "undecided"]
OutcomeName = Literal["ok", "wrong", "failed", "unsupported", "out_of_memory", "timeout", "cancelled", "not_run"]
# Where a strategy stands, or where it ended: a first call that has failed is ``first_call`` in run files. Files from
# elsewhere may hold others.
Stage = Literal[
    "waiting", "request", "forecast", "reference", "memory", "first call", "first_call", "sampling", "process peak",
    "explaining", "done",
]  # fmt: skip

# A name can be printed on one line. Mapbench's own words quote nobody, and hold nothing that a terminal obeys.
_PRINTABLE = r"\A[^\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069]*\Z"
_OBEYED_BY_NOBODY = rf"\A[^{COMMANDS.pattern[1:]}*\Z"

Id = Annotated[str, Meta(pattern=r"\A[0-9a-f]{24}\Z")]
Name = Annotated[str, Meta(max_length=200, pattern=_PRINTABLE)]
Words = Annotated[str, Meta(max_length=20_000, pattern=_OBEYED_BY_NOBODY)]
Text = Annotated[str, Meta(max_length=20_000)]
Line = Annotated[str, Meta(max_length=200, pattern=_OBEYED_BY_NOBODY)]
Note = Annotated[str, Meta(max_length=2_000, pattern=_OBEYED_BY_NOBODY)]
# A function of a person's own may come as code of some MiB, with the elements in it, and stands in every script.
LongText = Annotated[str, Meta(max_length=4_000_000)]

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Seconds = Annotated[float, Meta(ge=0.0, le=1e9)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Amount = Annotated[float, Meta(ge=0.0, le=1e60)]
# Values may be as wrong as their dtype can tell.
Difference = Annotated[float, Meta(ge=0.0, le=1.7e308)]
# What has a logarithm: latencies in seconds, ratios, rates. Ends of an interval of little evidence are far apart.
Positive = Annotated[float, Meta(ge=1e-60, le=1e60)]
Ranking = Annotated[list[list[Name]], Meta(max_length=MOST_STRATEGIES)]
Cost = Annotated[float, Meta(ge=-1e9, le=1e9)]  # seconds

# Facts, options and figures, whose names no schema fixes: nested twice at most.
if TYPE_CHECKING:
    Plain = Any
else:
    _Leaf = None | bool | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | float | Text
    _Inner = _Leaf | list[_Leaf] | dict[Name, _Leaf]
    Plain = _Leaf | list[_Inner] | dict[Name, _Inner]
Figures = dict[Name, Plain]


class Struct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all parts of a run: immutable; change one with `msgspec.structs.replace`."""


class Request(Struct, frozen=True, kw_only=True):
    """What is asked of a run: make one with `measure.run.request.parse`."""

    workload: Name
    workload_options: Annotated[dict[Name, Plain], Meta(max_length=MOST_SIZES)] = {}
    size: Annotated[dict[Name, Count], Meta(max_length=MOST_SIZES)]
    dtype: Name
    device: Name
    strategies: Annotated[list[Name], Meta(max_length=MOST_STRATEGIES)]  # canonical slugs without repetition
    budget_s: Seconds
    # The budget is automatic: sampling goes on until then at most, while the answer is not usable.
    max_budget_s: Seconds | UnsetType = msgspec.UNSET
    memory_limit_mib: Count | None = None
    threads: Count | None = None
    seed: Count = 0  # of the inputs
    own: functions.OwnFunction | UnsetType = msgspec.UNSET  # the function of a person's own that was mapped
    machine: Name | UnsetType = msgspec.UNSET  # that measures it, where that is not the server's own
    allocator: Allocator | UnsetType = msgspec.UNSET  # of the processes that were timed; of old files the default one

    @property
    def title(self) -> str:
        """The workload's slug, or the title of a function of a person's own, else its name: its slug is a digest."""
        own = self.own
        return (own.facts.title or own.given.function) if isinstance(own, functions.OwnFunction) else self.workload

    @property
    def place(self) -> str:
        """The device, after its machine where one is named: ``gpu-box / GPU:0``."""
        return f"{self.machine} / {self.device}" if self.machine else self.device

    def record(self) -> "Request":
        """This request with what has been derived of a function of a person's own until now."""
        own = functions.get(self.workload, self.size) or msgspec.UNSET
        return msgspec.structs.replace(self, own=own)


class Analysis(Struct, frozen=True, kw_only=True):
    """The method that made intervals and ranks of samples."""

    version: Annotated[int, Meta(ge=1, le=6)] = 6
    method: Words = (
        "log latency = strategy + round + process + slice, by lower quartiles; variances of processes, slices and "
        "reruns, student-t, bonferroni for comparisons with the fastest"
    )
    confidence: Annotated[float, Meta(ge=0.5, le=0.9999)] = 0.95
    margin: Share = 0.03  # no tie is said to be closer
    seed: Count = 0  # of the order in which processes take turns
    # Of a sweep: the relative standard deviation between processes at all points, and its degrees of freedom.
    spread: tuple[Seconds, Seconds] | UnsetType = msgspec.UNSET


class Limit(Struct, frozen=True, kw_only=True):
    """The least time that one call can take on the device: ``term`` says which roof is the highest."""

    seconds: Positive
    bytes: Count
    flops: Count
    bandwidth_bytes_per_s: Positive  # at the case's own size and share of reading
    flops_per_s: Positive
    dispatch_s: Seconds  # the lesser of op_s and call_s
    term: Term = ""
    read_bytes: Count = 0
    written_bytes: Count = 0
    functions: dict[Name, Count] = {}  # results wanted of functions that have a pace of their own, such as sin
    functions_per_s: dict[Name, Positive] = {}
    op_s: Seconds | None = None  # of an eager op
    call_s: Seconds | None = None  # of a call of a tf.function
    largest_output_bytes: Count = 0  # of the largest tensor that is written, 0 where it is not known
    unknown: list[Name] | UnsetType = msgspec.UNSET  # ops of unknown work, for which it is a limit of bytes alone


class Control(Struct, frozen=True, kw_only=True):
    """The twin's latency over its original's: ``ratio`` with its interval; ``resolution`` is a relative difference."""

    strategy: Name
    ratio: Positive
    low: Positive
    high: Positive
    resolution: Amount


class Warning(Struct, frozen=True, kw_only=True):
    code: Name
    message: LongText
    values: dict[Name, Plain] = {}


class Error(Struct, frozen=True, kw_only=True):
    type: Name
    message: LongText  # the sentence a person can act on
    detail: LongText = ""  # TensorFlow's (or Python's) full text
    values: dict[Name, int | float] | UnsetType = msgspec.UNSET  # of earlier versions: the amounts in the sentence


class Latency(Struct, frozen=True, kw_only=True):
    """Seconds per call with its interval, by the run's `Analysis.method`. ``typical_s``: the median of the samples
    beside it, where the estimate is of something else; files of earlier methods do not have it."""

    median_s: Positive
    low_s: Positive
    high_s: Positive
    typical_s: Positive | UnsetType = msgspec.UNSET


class Replica(Struct, frozen=True, kw_only=True):
    """One process of a strategy. Sample i was taken in ``rounds[i]``, at ``at_s[i]`` seconds after the run's start, as
    the mean of ``calls_per_sample`` calls in a row. Older files lack what may be UNSET; of a call each."""

    id: Count
    first_call_s: Seconds | None = None
    calls_per_sample: Annotated[int, Meta(ge=1, le=10**12)]
    rounds: list[Count] = []
    at_s: list[Seconds] = []
    samples_s: list[Positive] = []
    disturbed: list[Count] | UnsetType = msgspec.UNSET  # of earlier versions: samples that waited for a processor
    faults: list[Seconds] | UnsetType = msgspec.UNSET  # minor page faults
    kernel_s: list[Seconds] | UnsetType = msgspec.UNSET  # in the kernel
    cpu_s: list[Seconds] | UnsetType = msgspec.UNSET  # of processors in all
    ended: Words = ""  # why it stopped


class AtPeak(Struct, frozen=True, kw_only=True):
    op: Text
    bytes: Count


class Timeline(Struct, frozen=True, kw_only=True):
    """Live bytes over the seconds of a call, at most `TIMELINE_POINTS` of them."""

    t_s: Annotated[list[Seconds], Meta(max_length=TIMELINE_POINTS)]
    live_bytes: list[Count]


class Memory(Struct, frozen=True, kw_only=True):
    """Memory of one steady call. ``temporary_bytes`` = max(0, peak − output). Inputs and captured bytes exist before
    the call and are not in its peak."""

    peak_bytes: Count
    output_bytes: Count
    temporary_bytes: Count
    input_bytes: Count
    captured_bytes: Count
    method: Literal["events", "allocator", "tracemalloc"]
    process_peak_bytes: Count | None = None
    at_peak: list[AtPeak] = []
    timeline: Timeline | None = None


class LeafCheck(Struct, frozen=True, kw_only=True):
    """One tensor of the output against the reference. ``worst_index`` includes the batch axis."""

    path: Name
    dtype: Name
    shape: list[Count]
    max_abs: Difference | None = None
    max_rel: Difference | None = None
    max_ulp: Difference | None = None
    nan_mismatches: Count = 0
    mismatch_share: Share = 0.0
    worst_index: list[Count] = []
    tolerance: dict[Name, Plain] = {}


class Correctness(Struct, frozen=True, kw_only=True):
    ok: bool
    max_abs: Difference | None = None
    max_rel: Difference | None = None
    max_ulp: Difference | None = None
    nan_mismatches: Count = 0
    leaves: list[LeafCheck] = []


class BreakEven(Struct, frozen=True, kw_only=True):
    """The calls after which this strategy, first call included, has cost less than ``against``. ``pays_off``:
    ``calls``, after that many (with an interval); ``from_first``, since it starts no later and is no slower; ``until``,
    only up to that many, since it starts earlier and is slower; ``never``; ``undecided``, and ``low`` is the fewest
    that it may take."""

    against: Name
    calls: Amount | None = None
    low: Amount | None = None
    high: Amount | None = None
    pays_off: PaysOff | UnsetType = msgspec.UNSET


class Code(Struct, frozen=True, kw_only=True):
    source: LongText
    sha256: Name


class Measurement(Struct, frozen=True, kw_only=True):
    """The figures of a strategy. ``twin_of``: the strategy that is entered once more here, as the run's control, with
    the default allocator (`DEFAULT_MEMORY`) or as the `BASE` of a gate: such a one has no rank and is no row of a
    table."""

    strategy: Name
    mapper: Name
    mode: Name
    options: dict[Name, Plain] = {}
    twin_of: Name | None = None
    outcome: OutcomeName = "not_run"
    stage: Name = "waiting"
    error: Error | None = None
    warnings: list[Warning] = []
    first_call_s: Seconds | None = None
    rough_s: Positive | UnsetType = msgspec.UNSET  # of a call of the process that measures memory, beside another one
    latency: Latency | None = None
    replicas: list[Replica] = []
    memory: Memory | None = None
    correctness: Correctness | None = None
    break_even: list[BreakEven] = []
    why: Why = Why()
    code: Code | None = None

    @property
    def has_default_memory(self) -> bool:
        """True of a strategy that was timed once more with the machine's default allocator."""
        return self.twin_of is not None and self.strategy.endswith(DEFAULT_MEMORY)

    @property
    def reason(self) -> str:
        """Why it ended as it did; empty where nothing went wrong."""
        return self.error.message if self.error else ""

    @property
    def is_timed(self) -> bool:
        return any(replica.samples_s for replica in self.replicas)

    def __post_init__(self) -> None:
        # That somebody wanted it explained is said by no tag in the file.
        if self.why.profiled_s > 0 or self.why.note:
            msgspec.structs.force_setattr(self, "why", Explained(**msgspec.structs.asdict(self.why)))


class Axis(Struct, frozen=True, kw_only=True):
    """A size parameter that a sweep varies, or an option of the strategies that have it. ``values`` ascend."""

    kind: Literal["size", "option"]
    name: Name
    values: Annotated[list[Annotated[int, Meta(ge=0, lt=2**31)]], Meta(min_length=2, max_length=MOST_POINTS)]
    scale: Literal["log", "linear"]


class Point(Struct, frozen=True, kw_only=True):
    """One case of a sweep: a comparison's body, ``at`` one value of each axis. ``reason`` says why it is not complete,
    or, where it is, why sampling stopped.

    A swept option is in the slugs of the strategies that have it; others are measured at its first value only. Older
    files have points between those of the grid, with the strategies whose lines cross there, and ``skipped`` ones with
    a ``ranking``, which is inferred from the points around them."""

    at: dict[Name, Count]
    status: Literal["waiting", "running", "complete", "budget", "cancelled", "interrupted", "skipped"] = "waiting"
    reason: LongText = ""
    limit: Limit | None = None
    control: Control | None = None
    warnings: list[Warning] = []
    measurements: Annotated[list[Measurement], Meta(max_length=MOST_STRATEGIES)] = []
    ranking: Ranking = []
    verdict: Words = ""


class Crossover(Struct, frozen=True, kw_only=True):
    """``a`` is faster than ``b`` below ``value`` of the axis, and slower above it: the slugs of two strategies, without
    a swept option. Where there is no crossing, the numbers are None and ``none`` says why."""

    a: Name
    b: Name
    axis: Name
    value: Amount | None = None
    low: Positive | None = None
    high: Positive | None = None
    none: Words | None = None


class Fit(Struct, frozen=True, kw_only=True):
    """latency ≈ ``fixed_s`` + ``per_element_s`` · n over an axis of sizes, each with its interval. ``note`` says where
    the fit is poor."""

    strategy: Name
    axis: Name
    fixed_s: Cost
    fixed_low_s: Cost
    fixed_high_s: Cost
    per_element_s: Cost
    per_element_low_s: Cost
    per_element_high_s: Cost
    note: Text = ""


class ScriptEnd(Struct, frozen=True, kw_only=True):
    """The end of a script that was run for its figures."""

    source: LongText
    figures: Figures = {}
    error: LongText = ""  # why it failed, empty where it ran through
    ended: bool | UnsetType = msgspec.UNSET  # that is no failure: cancelled, took too long, needed too much memory
    printed: LongText = ""  # the end of its output
    seconds: Seconds = 0.0


class Evidence(Struct, frozen=True, kw_only=True):
    """A piece of evidence for claims, of a need's key: a run, a script's end, or the reason why there is neither."""

    need: Name
    run: "Run | None" = None
    script: ScriptEnd | None = None
    reason: LongText = ""


class Decision(Struct, frozen=True, kw_only=True):
    """What people made of a run, in their words; ``by`` is a name that nobody checks. `measure.run.decision.make` makes
    one."""

    title: Line = ""
    note: Note = ""
    decision: Note = ""
    by: Line = ""
    at: Name


class Run(Struct, frozen=True, kw_only=True):
    schema: Literal["mapbench.run/1"] = "mapbench.run/1"
    id: Id
    kind: Literal["compare", "sweep", "claims"] = "compare"
    parent: Id | None = None
    created: Name
    started: Name | None = None
    finished: Name | None = None
    status: Status = "interrupted"
    stop_reason: LongText = ""
    request: Request
    environment: Annotated[dict[Name, Plain], Meta(max_length=100)] = {}
    analysis: Analysis = Analysis()
    limit: Limit | None = None
    control: Control | None = None
    warnings: list[Warning] = []
    measurements: Annotated[list[Measurement], Meta(max_length=MOST_STRATEGIES)] = []
    ranking: Ranking = []
    verdict: Words = ""
    # Of sweeps only:
    axes: Annotated[list[Axis], Meta(max_length=2)] = []
    points: Annotated[list[Point], Meta(max_length=2 * MOST_CELLS)] = []
    crossovers: list[Crossover] = []
    fits: list[Fit] = []
    # Of claims only, and not in other files: their ids, and what they are judged by.
    claims: Annotated[list[Name], Meta(max_length=300)] | UnsetType = msgspec.UNSET
    evidence: Annotated[list[Evidence], Meta(max_length=300)] | UnsetType = msgspec.UNSET
    decision: Decision | UnsetType = msgspec.UNSET  # only where there is one
    # Of each part, see `measure.run.encoding`: made when a file is written, and empty elsewhere; old files have none.
    digest: dict[str, str | list[str]] | UnsetType = msgspec.UNSET

    def measurement(self, slug: str) -> Measurement:
        """The measurement of a strategy (twins have slugs of their own); KeyError where there is none."""
        for measurement in self.measurements:
            if measurement.strategy == slug:
                return measurement
        raise KeyError(slug)
