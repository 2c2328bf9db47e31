"""The columns of the table of strategies, each once: its value, its unit, and its name where it is shown.

A column is in every output that has a name for it here: in CSV, as text (on the terminal and in Markdown), on the page.
"""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

from measure.judge import limit
from measure.judge.findings import Findings, Row
from measure.run import text

Output = Literal["csv", "text", "page"]


@dataclass(frozen=True)
class Unit:
    """The way in which values of a kind are written as text; CSV has them as they are. On the page a number is
    multiplied by ``scale`` and shown as ``printf`` says; ``dtype`` is its type in a frame, empty for words."""

    written: Callable[[Any], str] = str
    scale: float = 1.0
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
    """One column. ``value``: of a row, in seconds or bytes where it has such a unit, None where it is not known.
    ``csv``, ``text`` and ``page``: its heads, empty where it is not shown. ``as_text``: in place of the value, on the
    terminal; ``help``: on the page."""

    value: Callable[[Row], Any]
    unit: Unit = WORDS
    csv: str = ""
    text: str = ""
    page: str = ""
    help: str = ""
    as_text: Callable[[Row], str] | None = None

    def written(self, row: Row) -> str:
        """Its cell as text."""
        if self.as_text is not None:
            return self.as_text(row)
        value = self.value(row)
        return text.MISSING if value is None else self.unit.written(value)


def _interval(row: Row) -> str | None:
    """``1.38 ms – 1.47 ms``"""
    if row.interval is None:
        return None
    return " – ".join(text.seconds(end, text.digits(*row.interval)) for end in row.interval)


def _carried(row: Row) -> float | None:
    """The latency with the digits that its interval carries."""
    if row.median_s is None or row.interval is None:
        return None
    return float(f"{row.median_s:.{text.digits(*row.interval) - 1}e}")


def _error(name: str) -> Callable[[Row], float | None]:
    return lambda row: getattr(row.measurement.correctness, name, None)


def _notes(row: Row) -> str:
    return " ".join(warning.message for warning in row.measurement.warnings)


# fmt: off
COLUMNS: tuple[Column, ...] = (
    Column(attrgetter("rank"), RANK, "rank", "rank", "rank", "Place among the right strategies; ties share one."),
    Column(attrgetter("slug"), WORDS, "strategy", "strategy"),
    Column(attrgetter("label"), page="strategy"),
    Column(attrgetter("mapper"), csv="mapper"),
    Column(attrgetter("mode"), csv="mode"),
    Column(attrgetter("outcome"), csv="outcome"),
    Column(attrgetter("status"), page="outcome"),
    Column(attrgetter("median_s"), SECONDS, "latency_s", "latency", as_text=attrgetter("latency")),
    Column(_carried, SECONDS, page="latency",
           help="Time of one steady call: of the lower quartile of each turn's samples the geometric mean. Older runs "
           "have what their methods gave."),
    Column(attrgetter("low_s"), csv="low_s"),
    Column(attrgetter("high_s"), csv="high_s"),
    Column(_interval, text="95 % interval", page="95 % interval",
           help="Both ends of the latency's 95 % interval, the pace of the machine included."),
    Column(attrgetter("typical_s"), SECONDS, "typical_s", "", "typical",
           "The median of each process' samples, of these the geometric mean: what a call takes as things are."),
    Column(attrgetter("factor"), TIMES, page="× faster", help="Latency of the baseline over the strategy's own."),
    Column(attrgetter("of_limit"), TIMES, "", "× floor", "× floor",
           "Latency over the theoretical floor (estimate): the least time that the bytes and the arithmetic of a call "
           "allow. The probes behind it are good to ±15 %."),
    Column(attrgetter("first_call_s"), SECONDS, "first_call_s", "first call", "first call",
           "Tracing and compiling included."),
    Column(attrgetter("peak_bytes"), BYTES, "peak_bytes", "peak memory", "peak memory",
           "Most memory held at once during one call, inputs not counted."),
    Column(attrgetter("output_bytes"), BYTES, "output_bytes", "", "output", "Memory of the result."),
    Column(attrgetter("temporary_bytes"), BYTES, "temporary_bytes", "temporary", "temporary",
           "What the peak has beyond the output."),
    Column(attrgetter("process_peak_bytes"), BYTES, "process_peak_bytes", "", "process peak",
           "What the operating system saw the process gain during the call."),
    Column(_error("max_abs"), ERROR, "max_abs", "", "max abs error",
           "Largest absolute error against the float64 reference."),
    Column(_error("max_rel"), ERROR, "max_rel", "", "max rel error",
           "Largest relative error against the float64 reference."),
    Column(attrgetter("max_of_scale"), ERROR, "", "largest error", "largest error",
           "Largest error, relative to the root mean square of the right values."),
    Column(_error("max_ulp"), ULP, "max_ulp", "", "max ULP error",
           "Largest error in units in the last place; of a value that cancels out it says nothing."),
    Column(attrgetter("processes"), COUNT, "processes", "", "processes", "Processes that were sampled."),
    Column(attrgetter("samples"), COUNT, "samples", "", "samples", "Samples of all its processes."),
    Column(lambda row: limit.page_faults(row.measurement), COUNT, "page_faults", "", "page faults",
           "Minor page faults of a call: memory that is fetched from the system anew. Median of its samples."),
    Column(attrgetter("sentence"), csv="error"),
    Column(_notes, csv="warnings"),
    Column(attrgetter("of_limit"), csv="times_limit"),
    Column(lambda row: limit.note(row.measurement), csv="limit_note"),
    Column(attrgetter("limit_s"), csv="limit_s"),
    Column(attrgetter("limit_term"), csv="limit_term"),
    Column(lambda row: row.default.seconds if row.default else None, SECONDS, "default_memory_s", "default memory",
           "default memory", "Latency with this machine's default allocator in place of a pool, of one process."),
    Column(lambda row: text.outcome(row.outcome, row.sentence), text="outcome"),
    Column(lambda row: " ".join((row.sentence, _notes(row))).strip(), page="note"),
)
# fmt: on


def of(output: Output, result: Findings | None = None) -> list[Column]:
    """The columns of an output, in their order there; of some findings those alone that tell something."""
    shown = [column for column in COLUMNS if getattr(column, output)]
    if result is None or output == "csv":
        return shown
    telling = {
        "× floor": output == "text" or limit.tells(result.run),
        "default memory": any(row.default for row in result.rows),
    }
    return [column for column in shown if telling.get(column.text, True)]


def number(column: Column, row: Row) -> Any:
    """A cell of the page: words, or a number in the unit of its ``printf``."""
    value = column.value(row)
    return value * column.unit.scale if column.unit.printf and value is not None else value
