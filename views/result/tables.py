"""The tables of a comparison: correctness, everything in one table, and the sentences of failures. Pure."""

import pandas as pd

from measure.judge import limit, payoff, rules
from measure.model import text
from measure.model.run import Correctness, Measurement, Run
from measure.output import columns
from measure.output.rows import Row
from measure.statistics import break_even
from views.ui import look

# Sentences of ours are shorter, but for one that quotes an error; what TensorFlow says is often longer.
_NOTE_SIGNS, _SAID_SIGNS = 600, 220
_NO_BREAK = "\u00a0"  # between a strategy's shape and its name


def correctness_frame(rows: list[Row]) -> pd.DataFrame:
    """One line per checked strategy: passed or not, and the three largest errors. Wrong ones first."""
    lines = [
        {
            "strategy": row.label,
            "check": "✓ pass" if row.correct else "✕ wrong",
            "largest absolute error": look.error_size(row.max_abs),
            "relative": look.error_size(row.max_rel),
            "in ULP": look.error_size(row.max_ulp),
            "NaN differs": f"{row.nan_mismatches:,}",
        }
        for row in sorted(rows, key=lambda row: bool(row.correct))
        if row.correct is not None
    ]
    return pd.DataFrame(lines)


def correctness_sentence(rows: list[Row]) -> str:
    """A sentence that counts the strategies that agree with the reference: ``2 of 11 wrong: a.xla, b.graph.``"""
    checked = [row for row in rows if row.correct is not None]
    wrong = [row.slug for row in checked if not row.correct]
    if not checked:
        return "No output has been compared with the reference yet."
    if not wrong:
        return f"all {len(checked)} agree with the float64 reference within tolerance."
    return f"{len(wrong)} of {len(checked)} wrong: {', '.join(wrong)}."


def tolerances(measurement: Measurement) -> list[str]:
    """Return a sentence for each wrong leaf of an output: the error that it may have. Plain text."""
    check: Correctness | None = measurement.correctness
    sentences = []
    for leaf in check.leaves if check else []:
        allowed = [f"{name} {look.error_size(leaf.tolerance.get(name))}" for name in ("absolute", "relative")
                   if isinstance(leaf.tolerance.get(name), (int, float)) and leaf.tolerance.get(name)]  # fmt: skip
        if allowed and (leaf.mismatch_share or leaf.nan_mismatches):
            sentences.append(f"In {leaf.path or 'the output'} an error of {' or '.join(allowed)} is allowed.")
    return sentences


def everything_frame(rows: list[Row], run: Run) -> pd.DataFrame:
    """All figures of all strategies, as numbers that can be sorted and copied; milliseconds and MiB."""
    if not rows:
        return pd.DataFrame()
    shown = [column for column in columns.of("page") if column.known(run)]
    frame = pd.DataFrame([[column.shown(row) for column in shown] for row in rows], columns=[c.page for c in shown])
    return frame.astype({column.page: column.unit.dtype for column in shown if column.unit.dtype})


def number_formats() -> dict[str, tuple[str, str]]:
    """The printf format and the explanation of each column of numbers, by its head."""
    return {column.page: (column.unit.printf, column.help) for column in columns.of("page") if column.unit.printf}


def break_even_frame(run: Run) -> pd.DataFrame:
    """A line for each compiled strategy, a column for each eager one: when the first has cost less than the second."""
    known = payoff.table(run)
    names = {m.strategy: look.label(m.strategy, m.mode) for m in run.measurements}
    head = ["compiled", *(f"against {names[slug]}" for slug in known.eager)]
    rows = zip(known.compiled, known.cells, strict=True)
    return pd.DataFrame([[names[slug], *map(payoff.words, pairs)] for slug, pairs in rows], columns=head)


def break_even_note(run: Run) -> str:
    """Sentences of what the table of break-even points holds, and what is not in it; plain text."""
    note = (
        "Calls, the first included, after which what stands at the left has cost less in total, with "
        f"{text.percent(run.analysis.confidence)} intervals; the scatter of first calls between processes is in them. "
        "Where latencies are too close to tell, ≥ stands before the fewest calls that it may take."
    )
    start_s = break_even.runtime_start_s(run.measurements)
    if start_s is not None:
        note += (
            f" TensorFlow and XLA take up to {look.seconds(start_s)} once per process to start, whatever the "
            "strategy: that is not counted."
        )
    return note


def failure_lines(rows: list[Row], run: Run) -> list[tuple[Row, str]]:
    """The strategies that did not end well, each with the sentence that a person can act on; plain text."""
    lines = []
    for row in rows:
        if row.failed and (row.outcome != "cancelled" or row.sentence):  # whoever cancelled knows why
            sentence = "" if row.sentence.endswith(":") else row.sentence  # TensorFlow's «Graph execution error:»
            if row.outcome == "out_of_memory":
                # TensorFlow's own words say what could not be allocated: they are in the full text.
                sentence = _too_much(run) if row.detail.strip() else f"{_too_much(run)} {sentence}".strip()
            sentence = sentence or _by_outcome(row)
            if row.outcome == "wrong":
                sentence = " ".join((look.sentence(sentence), *tolerances(row.measurement)))
            lines.append((row, sentence))
    return lines


def _too_much(run: Run) -> str:
    limit = run.request.memory_limit_mib
    if limit is None:
        return "It needs more memory than there is: a smaller batch may fit."
    return f"It needs more memory than the limit of {limit:,} MiB: a smaller batch or a higher limit may help."


def _by_outcome(row: Row) -> str:
    sentences = {
        "timeout": "It did not finish in its time.",
        "unsupported": "It cannot run this way.",
        "wrong": "Its values differ from the reference.",
    }
    return sentences.get(row.outcome, "It ended without a message.")


def doubts(run: Run) -> list[str]:
    """Sentences for beside the verdict, of what the run cannot tell and what to do about it; plain text."""
    sentences = [look.sentence(warning.message) for warning in run.warnings if warning.code in rules.OF_A_VERDICT]
    return [look.shortened(words, _NOTE_SIGNS) for words in sentences]


def notes(rows: list[Row], run: Run) -> list[str]:
    """All other warnings of the run and of its strategies, plain text, each once: noise first. What TensorFlow said is
    cut, since it can be a page long; the table of everything holds it whole."""
    noise: list[str] = []
    others = [warning.message for warning in run.warnings if warning.code not in rules.OF_A_VERDICT]
    for row in rows:
        for warning in row.measurement.warnings:
            most = _SAID_SIGNS if warning.code == "tensorflow" else _NOTE_SIGNS
            sentence = look.shortened(f"{row.slug}: {warning.message}", most)
            (noise if warning.code in rules.OF_A_LATENCY else others).append(sentence)
        if row.of_limit_note:
            others.append(look.shortened(f"{row.slug}: {row.of_limit_note}", _NOTE_SIGNS))
    return list(dict.fromkeys((*noise, *others)))


def has_noise(rows: list[Row]) -> bool:
    """True if a latency that is shown is in doubt."""
    return any(warning.code in rules.OF_A_LATENCY for row in rows for warning in row.measurement.warnings)


def limit_caption(run: Run) -> str:
    """Return the end of the caption of the latencies: the limit, where it is known."""
    if run.limit is None:
        return "."
    sentence = f"; dashed: the limit, {limit.describe(run.limit)}. {limit.fresh_pages(run)}"
    return look.plain(sentence.rstrip())
