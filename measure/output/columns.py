"""The columns of the table of strategies, each once: what it shows, and what it is called where it is shown.

A column is in every output that has a name for it here: in CSV, as text (on the terminal and in Markdown), on the page.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from measure.judge import limit
from measure.model import text
from measure.model.run import Run
from measure.output import rows
from measure.output.rows import Row

Output = Literal["csv", "text", "page"]


@dataclass(frozen=True)
class Unit:
    """The way in which values of a kind are written; CSV has them as they are.

    ``written`` makes text of a value. On the page a number is multiplied by ``scale`` and shown as ``printf`` says,
    which is empty for what is no measured number; ``dtype`` is its type in a frame, empty for words. Markdown shows as
    code what has ``code``.
    """

    written: Callable[[Any], str] = str
    scale: float | None = None
    printf: str = ""
    dtype: str = ""
    code: bool = False


WORDS = Unit()
NAME = Unit(code=True)
RANK = Unit(dtype="Int64")
COUNT = Unit(printf="%.0f", dtype="float")
SECONDS = Unit(text.seconds, scale=1e3, printf="%.4g ms", dtype="float")
BYTES = Unit(text.size, scale=2**-20, printf="%.4g MiB", dtype="float")
TIMES = Unit(limit.shown, printf="%.3g ×", dtype="float")
ERROR = Unit(lambda value: f"{value:.2e}", printf="%.2e", dtype="float")
ULP = Unit(lambda value: f"{text.number(value)} ULP", printf="%.3g ULP", dtype="float")


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of the table of strategies.

    ``value`` takes it from a row, in seconds or bytes where it has such a unit; None where it is not known. ``csv``,
    ``text`` and ``page`` are its heads in these outputs, empty where it is not shown. ``as_text`` and ``on_page`` make
    the cells of an output that shows something else than the value. ``last_in`` names the outputs in which it stands
    behind all others. Outputs but those it is ``always_in`` leave it out of a run for which ``known`` is
    False. The page shows it ``at_first``, or when a person picks it. ``help`` explains it there.
    """

    value: Callable[[Row], Any]
    unit: Unit = WORDS
    csv: str = ""
    text: str = ""
    page: str = ""
    as_text: Callable[[Row], str] | None = None
    on_page: Callable[[Row], Any] | None = None
    last_in: tuple[Output, ...] = ()
    known: Callable[[Run], bool] = lambda run: True
    always_in: tuple[Output, ...] = ("csv",)
    at_first: bool = False
    help: str = ""

    def head(self, output: Output) -> str:
        """Its name in an output; empty where it is not shown."""
        return {"csv": self.csv, "text": self.text, "page": self.page}[output]

    def written(self, row: Row) -> str:
        """Its cell as text."""
        if self.as_text is not None:
            return self.as_text(row)
        value = self.value(row)
        return text.MISSING if value is None else self.unit.written(value)

    def shown(self, row: Row) -> Any:
        """Its cell on the page: words, or a number in the unit of its ``printf``."""
        value = self.value(row) if self.on_page is None else self.on_page(row)
        return value if value is None or self.unit.scale is None else value * self.unit.scale


def _interval(row: Row) -> str:
    """``1.38 ms – 1.47 ms``"""
    return text.MISSING if row.interval is None else " – ".join(map(text.seconds, row.interval))


COLUMNS: tuple[Column, ...] = (
    Column(
        value=lambda row: row.rank,
        as_text=lambda row: text.MISSING if row.rank is None else str(row.rank),
        unit=RANK,
        csv="rank",
        text="rank",
        page="rank",
        at_first=True,
        help="Place among the right strategies; ties share one.",
    ),
    Column(
        value=lambda row: row.slug,
        on_page=lambda row: row.label,
        unit=NAME,
        csv="strategy",
        text="strategy",
        page="strategy",
        at_first=True,
    ),
    Column(value=lambda row: row.mapper, csv="mapper"),
    Column(value=lambda row: row.mode, csv="mode"),
    Column(
        value=lambda row: row.outcome,
        as_text=lambda row: rows.outcome(row.measurement),  # with its reason, which may be long
        on_page=lambda row: row.status,
        last_in=("text", "page"),
        csv="outcome",
        text="outcome",
        page="outcome",
        at_first=True,
    ),
    Column(
        value=lambda row: row.median_s,
        unit=SECONDS,
        csv="latency_s",
        text="latency",
        page="latency",
        at_first=True,
        help="Time of one steady call: of the lower quartile of each turn's samples the geometric mean. Older runs "
        "have what their methods gave.",
    ),
    Column(value=lambda row: row.low_s, unit=SECONDS, csv="low_s"),
    Column(value=lambda row: row.high_s, unit=SECONDS, csv="high_s"),
    Column(
        value=lambda row: row.interval,
        as_text=_interval,
        on_page=lambda row: _interval(row) if row.median_s is not None else None,
        text="95 % interval",
        page="95 % interval",
        at_first=True,
        help="Both ends of the latency's 95 % interval. One process has none.",
    ),
    Column(
        value=lambda row: row.typical_s,
        unit=SECONDS,
        csv="typical_s",
        page="typical",
        help="The median of each process' samples, of these the geometric mean: what a call takes as things are.",
    ),
    Column(
        value=lambda row: row.factor,
        unit=TIMES,
        page="× faster",
        at_first=True,
        help="Latency of the baseline over the strategy's own.",
    ),
    Column(
        value=lambda row: row.of_limit,
        unit=TIMES,
        csv="times_limit",
        text="× floor",
        page="× floor",
        last_in=("csv",),
        known=limit.tells,
        always_in=("csv", "text"),
        help="Latency over the theoretical floor (estimate): the least time that the bytes and the arithmetic of a "
        "call allow. The probes behind it are good to ±15 %.",
    ),
    Column(value=lambda row: row.of_limit_note, csv="limit_note", last_in=("csv",)),
    Column(value=lambda row: row.limit.seconds if row.limit else None, unit=SECONDS, csv="limit_s", last_in=("csv",)),
    Column(value=lambda row: row.limit.term if row.limit else None, csv="limit_term", last_in=("csv",)),
    Column(
        value=lambda row: row.first_call_s,
        unit=SECONDS,
        csv="first_call_s",
        text="first call",
        page="first call",
        at_first=True,
        help="Tracing and compiling included.",
    ),
    Column(
        value=lambda row: row.peak_bytes,
        unit=BYTES,
        csv="peak_bytes",
        text="peak memory",
        page="peak memory",
        at_first=True,
        help="Most memory held at once during one call, inputs not counted.",
    ),
    Column(
        value=lambda row: row.output_bytes, unit=BYTES, csv="output_bytes", page="output", help="Memory of the result."
    ),
    Column(
        value=lambda row: row.temporary_bytes,
        unit=BYTES,
        csv="temporary_bytes",
        text="temporary",
        page="temporary",
        help="What the peak has beyond the output.",
    ),
    Column(
        value=lambda row: row.process_peak_bytes,
        unit=BYTES,
        csv="process_peak_bytes",
        page="process peak",
        help="What the operating system saw the process gain during the call.",
    ),
    Column(
        value=lambda row: row.max_abs,
        unit=ERROR,
        csv="max_abs",
        page="max abs error",
        help="Largest absolute error against the float64 reference.",
    ),
    Column(
        value=lambda row: row.max_rel,
        unit=ERROR,
        csv="max_rel",
        page="max rel error",
        help="Largest relative error against the float64 reference.",
    ),
    Column(
        value=lambda row: row.max_ulp,
        unit=ULP,
        csv="max_ulp",
        text="largest error",
        page="largest error",
        help="Largest error in units in the last place.",
    ),
    Column(
        value=lambda row: row.processes,
        unit=COUNT,
        csv="processes",
        page="processes",
        help="Processes that were sampled.",
    ),
    Column(
        value=lambda row: row.samples, unit=COUNT, csv="samples", page="samples", help="Samples of all its processes."
    ),
    Column(
        value=lambda row: row.faults,
        unit=COUNT,
        csv="page_faults",
        page="page faults",
        help="Minor page faults of a call: memory that is fetched from the system anew. Median of its samples.",
    ),
    Column(
        value=lambda row: row.default_s,
        unit=SECONDS,
        csv="default_memory_s",
        text="default memory",
        page="default memory",
        last_in=("csv",),
        known=lambda run: any(item.has_default_memory for item in run.measurements),
        help="Latency with this machine's default allocator in place of a pool, of one process.",
    ),
    Column(value=lambda row: row.sentence, csv="error"),
    Column(value=lambda row: " ".join(warning.message for warning in row.measurement.warnings), csv="warnings"),
    Column(value=lambda row: " ".join((row.sentence, *row.notes)).strip(), page="note"),
)


def of(output: Output, run: Run | None = None) -> list[Column]:
    """The columns of an output, in their order there; those that are known of a run, where one is given."""
    shown = (column for column in COLUMNS if column.head(output))
    known = (column for column in shown if run is None or output in column.always_in or column.known(run))
    return sorted(known, key=lambda column: output in column.last_in)
