"""The columns of the table of strategies, each once: what it shows, and what it is called where it is shown.

A column is in every output that has a name for it here: in CSV, as text (on the terminal and in Markdown), on the page.
"""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

from measure.judge import limit
from measure.output import rows
from measure.output.rows import Row
from measure.run import text
from measure.run.run import Run

Output = Literal["csv", "text", "page"]


@dataclass(frozen=True)
class Unit:
    """The way in which values of a kind are written; CSV has them as they are.

    ``written`` makes text of a value. On the page a number is multiplied by ``scale`` and shown as ``printf`` says,
    which is empty for what is no measured number; ``dtype`` is its type in a frame, empty for words.
    """

    written: Callable[[Any], str] = str
    scale: float | None = None
    printf: str = ""
    dtype: str = ""


WORDS = Unit()
RANK = Unit(dtype="Int64")
COUNT = Unit(printf="%.0f", dtype="float")
SECONDS = Unit(text.seconds, scale=1e3, printf="%.4g ms", dtype="float")
BYTES = Unit(text.size, scale=2**-20, printf="%.4g MiB", dtype="float")
TIMES = Unit(limit.shown, printf="%.3g ×", dtype="float")
ERROR = Unit(lambda value: f"{value:.2e}", printf="%.2e", dtype="float")
ULP = Unit(lambda value: f"{text.number(value)} ULP", printf="%.3g ULP", dtype="float")


@dataclass(frozen=True)
class Column:
    """One column of the table of strategies.

    ``value`` takes it from a row, in seconds or bytes where it has such a unit; None where it is not known. ``csv``,
    ``text`` and ``page`` are its heads in these outputs, empty where it is not shown; ``last_in`` names those in which
    it stands behind all others. ``on_page`` is shown there in place of the value, and ``as_text`` on the terminal. A
    run for which it is not ``telling`` has none in an output but CSV. The page shows it ``at_first``, or when a person
    picks it; ``help`` explains it there.
    """

    value: Callable[[Row], Any]
    unit: Unit = WORDS
    csv: str = ""
    text: str = ""
    page: str = ""
    help: str = ""
    at_first: bool = False
    last_in: tuple[Output, ...] = ()
    as_text: Callable[[Row], str] | None = None
    on_page: Callable[[Row], Any] | None = None
    telling: Callable[[Run, Output], bool] = lambda run, output: True

    def head(self, output: Output) -> str:
        """Its name in an output; empty where it is not shown."""
        return str(getattr(self, output))

    def written(self, row: Row) -> str:
        """Its cell as text."""
        if self.as_text is not None:
            return self.as_text(row)
        value = self.value(row)
        return text.MISSING if value is None else self.unit.written(value)

    def shown(self, row: Row) -> Any:
        """Its cell on the page: words, or a number in the unit of its ``printf``."""
        value = (self.on_page or self.value)(row)
        return value if value is None or self.unit.scale is None else value * self.unit.scale


def _interval(row: Row) -> str | None:
    """``1.38 ms – 1.47 ms``"""
    return None if row.interval is None else " – ".join(map(text.seconds, row.interval))


def _warnings(row: Row) -> list[str]:
    return [warning.message for warning in row.measurement.warnings]


# fmt: off
COLUMNS: tuple[Column, ...] = (
    Column(attrgetter("rank"), RANK, "rank", "rank", "rank", "Place among the right strategies; ties share one.", True),
    Column(attrgetter("slug"), WORDS, "strategy", "strategy", "strategy", at_first=True, on_page=attrgetter("label")),
    Column(attrgetter("mapper"), csv="mapper"),
    Column(attrgetter("mode"), csv="mode"),
    Column(attrgetter("outcome"), WORDS, "outcome", "outcome", "outcome", at_first=True, last_in=("text", "page"),
           as_text=lambda row: rows.outcome(row.measurement), on_page=attrgetter("status")),
    Column(attrgetter("median_s"), SECONDS, "latency_s", "latency", "latency",
           "Time of one steady call: of the lower quartile of each turn's samples the geometric mean. Older runs have "
           "what their methods gave.", True),
    Column(attrgetter("low_s"), csv="low_s"),
    Column(attrgetter("high_s"), csv="high_s"),
    Column(_interval, text="95 % interval", page="95 % interval", at_first=True,
           help="Both ends of the latency's 95 % interval. One process has none."),
    Column(attrgetter("typical_s"), SECONDS, "typical_s", "", "typical",
           "The median of each process' samples, of these the geometric mean: what a call takes as things are."),
    Column(attrgetter("factor"), TIMES, page="× faster", at_first=True,
           help="Latency of the baseline over the strategy's own."),
    Column(attrgetter("of_limit"), TIMES, "times_limit", "× floor", "× floor",
           "Latency over the theoretical floor (estimate): the least time that the bytes and the arithmetic of a call "
           "allow. The probes behind it are good to ±15 %.",
           last_in=("csv",), telling=lambda run, output: output == "text" or limit.tells(run)),
    Column(lambda row: limit.note(row.measurement), csv="limit_note", last_in=("csv",)),
    Column(lambda row: row.limit.seconds if row.limit else None, csv="limit_s", last_in=("csv",)),
    Column(lambda row: row.limit.term if row.limit else None, csv="limit_term", last_in=("csv",)),
    Column(attrgetter("first_call_s"), SECONDS, "first_call_s", "first call", "first call",
           "Tracing and compiling included.", True),
    Column(attrgetter("peak_bytes"), BYTES, "peak_bytes", "peak memory", "peak memory",
           "Most memory held at once during one call, inputs not counted.", True),
    Column(attrgetter("output_bytes"), BYTES, "output_bytes", "", "output", "Memory of the result."),
    Column(attrgetter("temporary_bytes"), BYTES, "temporary_bytes", "temporary", "temporary",
           "What the peak has beyond the output."),
    Column(attrgetter("process_peak_bytes"), BYTES, "process_peak_bytes", "", "process peak",
           "What the operating system saw the process gain during the call."),
    Column(attrgetter("max_abs"), ERROR, "max_abs", "", "max abs error",
           "Largest absolute error against the float64 reference."),
    Column(attrgetter("max_rel"), ERROR, "max_rel", "", "max rel error",
           "Largest relative error against the float64 reference."),
    Column(attrgetter("max_of_scale"), ERROR, "", "largest error", "largest error",
           "Largest error, relative to the root mean square of the right values."),
    Column(attrgetter("max_ulp"), ULP, "max_ulp", "", "max ULP error",
           "Largest error in units in the last place; of a value that cancels out it says nothing."),
    Column(lambda row: sum(bool(replica.samples_s) for replica in row.measurement.replicas), COUNT,
           "processes", "", "processes", "Processes that were sampled."),
    Column(attrgetter("samples"), COUNT, "samples", "", "samples", "Samples of all its processes."),
    Column(lambda row: limit.page_faults(row.measurement), COUNT, "page_faults", "", "page faults",
           "Minor page faults of a call: memory that is fetched from the system anew. Median of its samples."),
    Column(attrgetter("default_s"), SECONDS, "default_memory_s", "default memory", "default memory",
           "Latency with this machine's default allocator in place of a pool, of one process.",
           last_in=("csv",), telling=lambda run, output: any(item.has_default_memory for item in run.measurements)),
    Column(attrgetter("sentence"), csv="error"),
    Column(lambda row: " ".join(_warnings(row)), csv="warnings"),
    Column(lambda row: " ".join((row.sentence, *_warnings(row))).strip(), page="note"),
)
# fmt: on


def of(output: Output, run: Run | None = None) -> list[Column]:
    """The columns of an output, in their order there; those that tell something of a run, where one is given."""
    shown = [column for column in COLUMNS if column.head(output)]
    if run is not None and output != "csv":
        shown = [column for column in shown if column.telling(run, output)]
    return sorted(shown, key=lambda column: output in column.last_in)
