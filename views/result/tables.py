"""The tables of a comparison: correctness, everything in one table, and the sentences of failures. Pure."""

import pandas as pd

from measure.judge import advice, limit
from measure.model import text
from measure.model.run import Correctness, Measurement, Run
from measure.output.rows import Row, strategies_of
from measure.statistics import break_even
from views.ui import look

_MIB = 2**20
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
    """All 11 strategies compute what the float64 reference does, within the tolerance of float32."""
    checked = [row for row in rows if row.correct is not None]
    wrong = [row.slug for row in checked if not row.correct]
    if not checked:
        return "No output has been compared with the reference yet."
    if not wrong:
        return f"all {len(checked)} agree with the float64 reference within tolerance."
    return f"{len(wrong)} of {len(checked)} wrong: {', '.join(wrong)}."


def tolerances(measurement: Measurement) -> list[str]:
    """For each wrong leaf of an output, what error it may have, in a sentence; plain text."""
    check: Correctness | None = measurement.correctness
    found = []
    for leaf in check.leaves if check else []:
        allowed = [f"{name} {look.error_size(leaf.tolerance.get(name))}" for name in ("absolute", "relative")
                   if isinstance(leaf.tolerance.get(name), (int, float)) and leaf.tolerance.get(name)]  # fmt: skip
        if allowed and (leaf.mismatch_share or leaf.nan_mismatches):
            found.append(f"In {leaf.path or 'the output'} an error of {' or '.join(allowed)} is allowed.")
    return found


def everything_frame(rows: list[Row], run: Run) -> pd.DataFrame:
    """All figures of all strategies, as numbers that can be sorted and copied; milliseconds and MiB."""

    def scaled(value: float | None, scale: float) -> float | None:
        return None if value is None else value * scale

    lines = []
    for row in rows:
        lines.append(
            {
                "rank": row.rank,
                "strategy": row.label,
                "outcome": row.status,
                "latency": scaled(row.median_s, 1e3),
                "from": scaled(row.low_s, 1e3),
                "to": scaled(row.high_s, 1e3),
                "× faster": row.factor,
                **({} if run.limit is None else {"× limit": row.of_limit}),
                "first call": scaled(row.first_call_s, 1e3),
                "peak": scaled(row.peak_bytes, 1 / _MIB),
                "output": scaled(row.output_bytes, 1 / _MIB),
                "temporary": scaled(row.temporary_bytes, 1 / _MIB),
                "process peak": scaled(row.process_peak_bytes, 1 / _MIB),
                "max abs error": row.max_abs,
                "max rel error": row.max_rel,
                "max ULP": row.max_ulp,
                "processes": row.processes,
                "samples": row.samples,
                "note": " ".join((row.sentence, *row.notes)).strip(),
            }
        )
    frame = pd.DataFrame(lines)
    numbers = [name for name in frame.columns if name not in ("rank", "strategy", "outcome", "note")]
    return frame.astype(dict.fromkeys(numbers, float) | {"rank": "Int64"}) if lines else frame


# Header, printf format and explanation of each column of numbers.
COLUMNS: dict[str, tuple[str, str]] = {
    "latency": ("%.4g ms", "Median time of one steady call: geometric mean of the processes' medians."),
    "from": ("%.4g ms", "Lower end of the latency's 95 % interval."),
    "to": ("%.4g ms", "Upper end of the latency's 95 % interval."),
    "× faster": ("%.3g ×", "Latency of the baseline over the strategy's own."),
    "× limit": (
        "%.3g ×",
        "Latency over the limit: the least time that the bytes, the arithmetic and the dispatch of a call allow. The "
        "probes behind it are good to ±15 %: 1 × stands for all from 0.85 to 1.",
    ),
    "first call": ("%.4g ms", "Tracing and compiling included."),
    "peak": ("%.4g MiB", "Most memory held at once during one call, inputs not counted."),
    "output": ("%.4g MiB", "Memory of the result."),
    "temporary": ("%.4g MiB", "What the peak has beyond the output."),
    "process peak": ("%.4g MiB", "What the operating system saw the process gain during the call."),
    "max abs error": ("%.2e", "Largest absolute error against the float64 reference."),
    "max rel error": ("%.2e", "Largest relative error against the float64 reference."),
    "max ULP": ("%.3g ULP", "Largest error in units in the last place."),
    "processes": ("%.0f", "Processes that were sampled."),
    "samples": ("%.0f", "Samples of all its processes."),
}


def break_even_frame(run: Run) -> pd.DataFrame:
    """A line for each compiled strategy, a column for each eager one: when the first has cost less than the second."""
    eager, lines = break_even.table(run)
    names = {m.strategy: look.label(m.strategy, m.mode) for m in run.measurements}
    head = ["compiled", *(f"against {names[slug]}" for slug in eager)]
    return pd.DataFrame([[names[slug], *said] for slug, said in lines], columns=head)


def break_even_note(run: Run) -> str:
    """What the table of break-even points holds, and what is not in it; plain text."""
    said = (
        "Calls, the first included, after which what stands at the left has cost less in total, with "
        f"{text.percent(run.analysis.confidence)} intervals; the scatter of first calls between processes is in them. "
        "Where latencies are too close to tell, ≥ stands before the fewest calls that it may take."
    )
    start_s = break_even.runtime_start_s(run.measurements)
    if start_s is not None:
        said += (
            f" TensorFlow and XLA take up to {look.seconds(start_s)} once per process to start, whatever the "
            "strategy: that is not counted."
        )
    return said


def failure_lines(rows: list[Row], run: Run) -> list[tuple[Row, str]]:
    """The strategies that did not end well, each with the sentence that a person can act on; plain text."""
    by_slug = {m.strategy: m for m in strategies_of(run)}
    found = []
    for row in rows:
        if row.failed and (row.outcome != "cancelled" or row.sentence):  # whoever cancelled knows why
            said = "" if row.sentence.endswith(":") else row.sentence  # TensorFlow's «Graph execution error:»
            if row.outcome == "out_of_memory":
                # TensorFlow's own words say what could not be allocated: they are in the full text.
                said = _too_much(run) if row.detail.strip() else f"{_too_much(run)} {said}".strip()
            said = said or _by_outcome(row)
            if row.outcome == "wrong":
                said = " ".join((look.sentence(said), *tolerances(by_slug[row.slug])))
            found.append((row, said))
    return found


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
    """What the run as a whole cannot tell, and what to do about it: sentences for beside the verdict, plain text."""
    said = [look.sentence(warning.message) for warning in run.warnings if warning.code in advice.OF_A_VERDICT]
    return [look.shortened(words, _NOTE_SIGNS) for words in said]


def notes(rows: list[Row], run: Run) -> list[str]:
    """All other warnings of the run and of its strategies, plain text, each once: noise first. What TensorFlow said is
    cut, since it can be a page long; the table of everything holds it whole."""
    codes: dict[str, str] = {}
    for item in strategies_of(run):
        codes.update({warning.message: warning.code for warning in item.warnings})
    found = [(True, warning.message) for warning in run.warnings if warning.code not in advice.OF_A_VERDICT]
    for row in rows:
        for note in row.notes:
            most = _SAID_SIGNS if codes.get(note) == "tensorflow" else _NOTE_SIGNS
            noise = codes.get(note) in advice.OF_A_LATENCY
            found.append((not noise, look.shortened(f"{row.slug}: {note}", most)))
    return list(dict.fromkeys(note for _, note in sorted(found, key=lambda each: each[0])))


def has_noise(rows: list[Row], run: Run) -> bool:
    """Whether a latency that is shown is in doubt."""
    shown = {row.slug for row in rows}
    warnings = [warning for item in run.measurements if item.strategy in shown for warning in item.warnings]
    return any(warning.code in advice.OF_A_LATENCY for warning in warnings)


def figures(rows: list[Row], run: Run, baseline: str | None) -> list[dict[str, str]]:
    """The four figures over the charts: label, value, interval and what they are about; plain text."""
    by_slug = {row.slug: row for row in rows}
    ranked = [row for row in rows if row.rank is not None] or [
        row for row in rows if row.outcome == "ok" and row.median_s is not None
    ]
    fastest = ranked[0] if ranked else None
    base = by_slug.get(baseline or "")
    return [
        _fastest(fastest, rows),
        _faster(fastest, base),
        _least_memory(fastest, rows),
        _resolution(run),
    ]


def _figure(label: str, value: str = look.MISSING, interval: str = "", under: str = "") -> dict[str, str]:
    return {"label": label, "value": value, "interval": interval, "under": under}


def _fastest(fastest: Row | None, rows: list[Row]) -> dict[str, str]:
    if fastest is None or fastest.median_s is None or fastest.low_s is None or fastest.high_s is None:
        return _figure("Fastest", under="nothing is timed yet")
    value = look.seconds(fastest.median_s)
    whole = look.seconds_with_interval(fastest.median_s, fastest.low_s, fastest.high_s)
    ties = sum(row.tie == fastest.tie for row in rows) - 1 if fastest.tied else 0
    names = fastest.label.replace(" ", _NO_BREAK) + (f" and {ties} in a tie" if ties else "")
    interval = whole.removeprefix(value).strip()
    if fastest.of_limit is not None:
        interval = f"{interval}, {limit.shown(fastest.of_limit)} the limit"
    return _figure("Fastest", value, interval, names)


def _faster(fastest: Row | None, base: Row | None) -> dict[str, str]:
    if fastest is None or base is None or fastest.factor is None:
        return _figure("Faster than the baseline", under="no baseline is timed yet")
    if fastest.factor_low is None or fastest.factor_high is None:
        return _figure("Faster than the baseline", look.factor(fastest.factor), under="is itself the fastest")
    value, interval = look.factor_with_interval(fastest.factor, fastest.factor_low, fastest.factor_high)
    return _figure("Faster than the baseline", value, interval)


def _least_memory(fastest: Row | None, rows: list[Row]) -> dict[str, str]:
    known = [row for row in rows if row.outcome == "ok" and row.peak_bytes is not None]
    if fastest is None or fastest.peak_bytes is None or not known:
        return _figure("Its memory over the least", under="known with the fastest")
    thriftiest = min(known, key=lambda row: row.peak_bytes or 0)
    least = thriftiest.peak_bytes or 0
    value = look.factor(fastest.peak_bytes / least) if least else look.size(fastest.peak_bytes)
    more = look.size(fastest.peak_bytes) != look.size(least)  # a few bytes more are nobody's business
    under = f"{thriftiest.label.replace(' ', _NO_BREAK)} needs {look.size(least)}" if more else "none needs less"
    return _figure("Its memory over the least", value, look.size(fastest.peak_bytes), under)


def _resolution(run: Run) -> dict[str, str]:
    if run.control is None:
        return _figure("Resolution", under="was not measured" if run.finished else "known when the control is timed")
    return _figure("Resolution", look.percent(run.control.resolution), under="smaller differences are ties")
