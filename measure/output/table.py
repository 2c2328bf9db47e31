"""The table of strategies, each column once with its unit and its name where it is shown; and a comparison as text.

A column is in every output that has a name for it here: in CSV, as text (on the terminal and in Markdown), on the page.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from measure.judge import break_even, limit
from measure.judge.findings import Figure, Findings, Row, findings, strategies_of
from measure.judge.verdict import verdict
from measure.run import text
from measure.run.run import Run

Output = Literal["csv", "text", "page"]
_NOTE_SIGNS = 300
# Of a sentence of ours, which may quote an error.
_FUNCTION_SIGNS = 600

_Name = TypeVar("_Name")
_Sentence = TypeVar("_Sentence", bound=Hashable)


# --- columns ---------------------------------------------------------------------------------------------------------


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
TIMES = Unit(limit.shown, printf="%.3g×", dtype="float")
ERROR = Unit("{:.2e}".format, printf="%.2e", dtype="float")
ULP = Unit(printf="%.3g ULP", dtype="float")


@dataclass(frozen=True)
class Column:
    """One column. ``value``: its path from a row, or a function of it, in seconds or bytes where it has such a unit,
    None where it is not known. ``csv``, ``text`` and ``page``: its heads, empty where it is not shown; ``help``: on the
    page."""

    value: str | Callable[[Row], Any]
    unit: Unit = WORDS
    csv: str = ""
    text: str = ""
    page: str = ""
    help: str = ""

    def of(self, row: Row) -> Any:
        return Figure[Any](self.value).__get__(row) if isinstance(self.value, str) else self.value(row)

    def written(self, row: Row) -> str:
        """Its cell as text."""
        value = self.of(row)
        return text.MISSING if value is None else value if isinstance(value, str) else self.unit.written(value)

    def number(self, row: Row) -> Any:
        """Its cell on the page: words, or a number in the unit of its ``printf``."""
        value = self.of(row)
        return value * self.unit.scale if self.unit.printf and value is not None else value


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


def _notes(row: Row) -> str:
    return " ".join(warning.message for warning in row.measurement.warnings)


# fmt: off
COLUMNS: tuple[Column, ...] = (
    Column("rank", RANK, "rank", "rank", "rank", "Place among the right strategies; ties share one."),
    Column("slug", WORDS, "strategy", "strategy"),
    Column(lambda row: text.label(row.slug, row.mode), page="strategy"),
    Column("mapper", csv="mapper"),
    Column("mode", csv="mode"),
    Column("outcome", csv="outcome"),
    Column("status", page="outcome"),
    Column("median_s", csv="latency_s"),
    Column("rough_s", SECONDS, "rough_s", "", "rough latency",
           "Of strategies that were not timed: a call of the process that measures memory, beside another process."),
    Column("latency", text="latency"),
    Column(_carried, SECONDS, page="latency",
           help="Time of one steady call: of the lower quartile of each turn's samples the geometric mean. Older runs "
           "have what their methods gave."),
    Column("low_s", csv="low_s"),
    Column("high_s", csv="high_s"),
    Column(_interval, text="95% CI", page="95% CI",
           help="Both ends of the latency's 95% CI, the pace of the machine included."),
    Column("measurement.latency.typical_s", SECONDS, "typical_s", "", "typical",
           "The median of each process' samples, of these the geometric mean: what a call takes as things are."),
    Column("factor.ratio", TIMES, page="× faster", help="Latency of the baseline over the strategy's own."),
    Column("of_limit", TIMES, "", "× floor", "× floor",
           "Latency over the theoretical floor (estimate): the least time that the bytes and the arithmetic of a call "
           "allow. The probes behind it are good to ±15%."),
    Column("first_call_s", SECONDS, "first_call_s", "first call", "first call", "Tracing and compiling included."),
    Column("peak_bytes", BYTES, "peak_bytes", "peak memory", "peak memory",
           "Most memory held at once during one call, inputs not counted."),
    Column("output_bytes", BYTES, "output_bytes", "", "output", "Memory of the result."),
    Column("temporary_bytes", BYTES, "temporary_bytes", "temporary", "temporary",
           "What the peak has beyond the output."),
    Column("process_peak_bytes", BYTES, "process_peak_bytes", "", "process peak",
           "What the operating system saw the process gain during the call."),
    Column("measurement.correctness.max_abs", ERROR, "max_abs", "", "max abs error",
           "Largest absolute error against the float64 reference."),
    Column("measurement.correctness.max_rel", ERROR, "max_rel", "", "max rel error",
           "Largest relative error against the float64 reference."),
    Column("max_of_scale", ERROR, "", "largest error", "largest error",
           "Largest error, relative to the root mean square of the right values."),
    Column("measurement.correctness.max_ulp", ULP, "max_ulp", "", "max ULP error",
           "Largest error in units in the last place; of a value that cancels out it says nothing."),
    Column("processes", COUNT, "processes", "", "processes", "Processes that were sampled."),
    Column("samples", COUNT, "samples", "", "samples", "Samples of all its processes."),
    Column(lambda row: limit.page_faults(row.measurement), COUNT, "page_faults", "", "page faults",
           "Minor page faults of a call: memory that is fetched from the system anew. Median of its samples."),
    Column("sentence", csv="error"),
    Column(_notes, csv="warnings"),
    Column("of_limit", csv="times_limit"),
    Column("measurement.why.limit_note", csv="limit_note"),
    Column("limit.seconds", csv="limit_s"),
    Column("limit.term", csv="limit_term"),
    Column("default_s", SECONDS, "default_memory_s", "default memory", "default memory",
           "Latency with this machine's default allocator in place of a pool, of one process."),
    Column(lambda row: text.outcome(row.outcome, row.sentence), text="outcome"),
    Column(lambda row: " ".join((row.sentence, _notes(row))).strip(), page="note"),
)
# fmt: on


def columns(output: Output, result: Findings | None = None) -> list[Column]:
    """The columns of an output, in their order there; of some findings those alone that tell something."""
    shown = [column for column in COLUMNS if getattr(column, output)]
    if result is None or output == "csv":
        return shown
    silent = set() if output == "text" or limit.tells(result.run) else {"× floor"}
    silent |= set() if any(row.default for row in result.rows) else {"default memory"}
    silent |= set() if any(row.rough_s for row in result.rows) else {"rough latency"}
    return [column for column in shown if (column.text or column.page) not in silent]


# --- a comparison as text --------------------------------------------------------------------------------------------


def render(run: Run) -> str:
    """The table, the verdict, and all that has to be known before they are trusted."""
    result = findings(run)
    parts = [grid(cells(result)), "", verdict(result), *sentences(result)]
    lists = [notes_ for notes_ in (listed(about_function(run)), [f"- {note}" for note in notes(run)]) if notes_]
    parts += [line for notes_ in lists for line in ("", *notes_)]
    if run.stop_reason:
        parts += [*([""] if lists else []), f"{run.status}: {run.stop_reason}."]
    return "\n".join(parts)


def cells(result: Findings) -> list[list[str]]:
    """The table of strategies: its heads, and a list for each strategy."""
    shown = columns("text", result)
    return [[column.text for column in shown], *([column.written(row) for column in shown] for row in result.rows)]


def sentences(result: Findings) -> list[str]:
    """Sentences beside the verdict: the limit, and why a strategy has no multiple of it; who is cheapest after how many
    calls; which differences the run tells."""
    run, made = result.run, list[str]()
    if run.limit is not None:
        made.append(f"The {limit.FLOOR} is {limit.describe(run.limit)}.")
        below = ((row.slug, row.measurement.why.limit_note) for row in result.rows)
        made += [f"{slug} is {note}." for slug, note in below if note]
    if cheapest := break_even.sentence(break_even.stretches_of(result), result.missing):
        made.append(cheapest)
    if (control := run.control) and len(result.ranked) > 1:
        made.append(
            f"Smallest detectable difference between the fastest: {text.percent(control.resolution)}. A/A control: "
            f"{control.strategy}, entered twice, differed from itself by {text.percent(abs(control.ratio - 1))}."
        )
    return made


def about_function(run: Run) -> list[str]:
    """The name of a function of a person's own, and sentences on what was derived of it, which begin with «It», and on
    what that means for mapping it: without them its wrong and its missing strategies are riddles. Plain text; nothing
    where a workload was measured."""
    notes = run.request.own.facts.notes if run.request.own else []
    sentences = [text.shortened(" ".join(note.split()), _FUNCTION_SIGNS) for note in notes]
    return [f"About {run.request.title}:", *sentences] if sentences else []


def listed(lines: Sequence[str]) -> list[str]:
    """Lines below the first one as a list."""
    return [*lines[:1], *(f"- {line}" for line in lines[1:])]


def notes(run: Run) -> list[str]:
    """Warnings of the run and of its strategies, each once; the names of those that share one before it."""
    of_run = [warning.message for warning in run.warnings]
    items = [(m.strategy, w.message) for m in strategies_of(run) for w in m.warnings if w.code != "chosen"]
    # TensorFlow's own can be a page long: the run file holds them whole.
    return [text.shortened(" ".join(note.split()), _NOTE_SIGNS) for note in (*of_run, *in_words(items))]


def by_sentence(notes: Iterable[tuple[_Name, _Sentence]]) -> list[tuple[list[_Name], _Sentence]]:
    """The sentences of (name, sentence), each once and with its names, in the order in which they came."""
    names: dict[_Sentence, list[_Name]] = {}
    for name, sentence in notes:
        names.setdefault(sentence, []).append(name)
    return [(its_names, sentence) for sentence, its_names in names.items()]


def in_words(notes: Iterable[tuple[str, str]]) -> list[str]:
    """The same in words, each name once: ``a.xla, b.graph: every call traces a function anew``."""
    return [f"{', '.join(dict.fromkeys(names))}: {sentence}" for names, sentence in by_sentence(notes)]


def grid(lines: Sequence[Sequence[str]]) -> str:
    """The lines as a table whose columns are as wide as they need to be."""
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]) - 1)]
    return "\n".join(
        "  ".join([cell.ljust(width) for cell, width in zip(line, widths, strict=False)] + [line[-1]]).rstrip()
        for line in lines
    )
