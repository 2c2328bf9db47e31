"""A run as CSV for spreadsheets, and as a summary in Markdown for a pull request.

All words of a run may have been written by anybody: they are text in every form, never a formula, a link or a mention.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

from measure.judge import payoff, reasons
from measure.machine import environment
from measure.model import text, why
from measure.model.run import Run
from measure.output import columns, rows, sweep_table, table
from measure.sweep import findings
from measure.sweep.lines import leaders, line_of

_SAMPLES = ("strategy", "twin_of", "process", "round", "at_s", "seconds", "calls_per_sample")
# Signs at which a spreadsheet takes a text for a formula, and those that hide such a sign from who looks for it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def table_csv(run: Run) -> str:
    """One line for each strategy, of a sweep at each point; seconds and bytes."""
    shown = columns.of("csv")
    lines = [(*at, *(column.value(row) for column in shown)) for at, body in _bodies(run) for row in rows.listed(body)]
    for point in run.points:
        if not point.measurements:
            # Who wins there, where that is inferred; and why it was not measured.
            for slug in point.ranking[0] if point.ranking else [None]:
                cells = {"strategy": slug, "outcome": point.status, "error": point.reason}
                lines.append((*point.at.values(), *(cells.get(column.csv) for column in shown)))
    return _csv((*(axis.name for axis in run.axes), *(column.csv for column in shown)), lines)


def _bodies(run: Run) -> list[tuple[tuple[int, ...], Run]]:
    """The comparisons of a run, each with its place on the axes: one without any, or those of a sweep's points."""
    if run.kind == "compare":
        return [((), run)]
    return [(tuple(point.at[axis.name] for axis in run.axes), findings.comparison(run, point)) for point in run.points]


def samples_csv(run: Run) -> str:
    """One line for each raw sample, those of the control's twin included."""
    return _csv(
        (*(axis.name for axis in run.axes), *_SAMPLES),
        (
            (*at, item.strategy, item.twin_of, replica.id, number, at_s, sample_s, replica.calls_per_sample)
            for at, body in _bodies(run)
            for item in body.measurements
            for replica in item.replicas
            for number, at_s, sample_s in zip(replica.rounds, replica.at_s, replica.samples_s, strict=False)
        ),
    )


def markdown(run: Run, link: str | None = None) -> str:
    """Verdict, table, environment in a fold, and the link, as GitHub and GitLab show them."""
    request = run.request
    swept = {axis.name: f"{min(axis.values):,} to {max(axis.values):,}" for axis in run.axes}
    sizes = {name: f"{value:,}" for name, value in request.size.items()} | swept
    size = ", ".join(f"{_plain(name)} {value}" for name, value in sizes.items())
    about = [f"{_code(request.workload)} at {size}", _plain(request.dtype), _plain(request.device)]
    about += [_plain(words) for words in (environment.machine(run.environment), run.created[:10]) if words]
    parts = [f"**{_plain(run.verdict or 'No verdict was reached.')}**", ", ".join(about)]
    if run.kind == "sweep":
        parts += _sweep(run)
    else:
        parts.append(_grid(table.head(), _body(run)))
        # One paragraph each: a list would make a bullet of a sentence.
        parts += [_plain(line) for line in (*table.limits(run), *payoff.sentences(run))]
    if run.control is not None:
        parts.append(table.resolution(run.control))
    if run.status != "complete":
        parts.append(f"The run is not complete ({run.status}): {_plain(run.stop_reason) or 'no reason is known'}.")
    if notes := table.notes(run):
        parts.append("\n".join(f"- {_plain(note)}" for note in notes))
    if why_so := _reasons(run):
        parts.append(f"<details>\n<summary>Why</summary>\n\n{why_so}\n\n</details>")
    facts = [tuple(map(_plain, fact)) for fact in environment.describe(run.environment)]
    parts.append(f"<details>\n<summary>Environment</summary>\n\n{_grid(('fact', 'value'), facts)}\n\n</details>")
    parts.append(f"Run {run.id}, measured with Mapbench" + (f": <{link}>" if link else "."))
    return "\n\n".join(parts) + "\n"


def _sweep(run: Run) -> list[str]:
    """A sweep's latencies, a line for each point; crossovers and fits."""
    strategies = sweep_table.strategies(run)
    cells = {
        (number, line_of(item.strategy, run.axes)): text.seconds(item.latency.median_s)
        if item.latency
        else item.outcome
        for number, point in enumerate(run.points)
        for item in point.measurements
    }
    head = [*(_plain(axis.name) for axis in run.axes), *map(_code, strategies), "leads"]
    body = [
        [
            *(f"{point.at[axis.name]:,}" for axis in run.axes),
            *(_plain(cells.get((number, slug), "–")) for slug in strategies),
            ", ".join(map(_code, leaders(point, run.axes))) or _plain(point.status),
        ]
        for number, point in enumerate(run.points)
    ]
    notes = [*sweep_table.crossings(run), *sweep_table.fits(run), *sweep_table.left_out(run)]
    return [_grid(head, body), "\n".join(f"- {_plain(note)}" for note in notes)]


def _reasons(run: Run) -> str:
    """A sentence for each strategy that has been explained."""
    explained = {item.strategy for item in run.measurements if why.known(item.why) is not None}
    if run.kind != "compare" or not explained:
        return ""
    return "\n".join(f"- {_plain(reason)}" for slug, reason in reasons.sentences(run).items() if slug in explained)


def _body(run: Run) -> list[list[str]]:
    """The cells of the terminal's table, in Markdown."""
    return [
        [(_code if column.unit.code else _plain)(column.written(row)) for column in columns.of("text")]
        for row in rows.listed(run)
    ]


def _grid(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *body))


def _csv(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_cell(value) for value in head)
    writer.writerows([_cell(value) for value in line] for line in lines)
    return file.getvalue()


def _cell(value: Any) -> Any:
    """A value that no spreadsheet takes for a formula: an apostrophe makes a text of what looks like one."""
    if not isinstance(value, str):
        return value
    plain = text.COMMANDS.sub("", value.replace("\r\n", "\n").replace("\r", "\n"))  # Python would not quote it alone
    return f"'{plain}" if plain.lstrip(" ").startswith(_FORMULA) else plain


# Signs that mean something to Markdown wherever they are; below, those that do at the start of a line.
_MARKDOWN = re.compile(r"([\\`*\[\]<>|~$#]|(?<!\w)_|_(?!\w)|&(?=[#\w]))")
_AT_START = re.compile(r"^(\d*)([-+=.)])(?=\s|$)")
# Mentions of names, numbers of issues, addresses and emoji are found in what is shown, where an escaped sign is as good
# as any. An invisible sign behind it keeps it from being found.
_FOUND_LATER = re.compile(r"([@#]|:(?=//|[\w+-]+:)|\b(?:www|gh)(?=[.-]))(?=\S)", re.IGNORECASE)
_WORD_JOINER = "\u2060"
_NAME = re.compile(r"[\w.?=,]+")


def _plain(words: str) -> str:
    """``words`` as Markdown that shows them on one line, as they are."""
    joined = _FOUND_LATER.sub(rf"\1{_WORD_JOINER}", text.COMMANDS.sub("", " ".join(words.split())))
    return _AT_START.sub(r"\1\\\2", _MARKDOWN.sub(r"\\\1", joined))


def _code(name: str) -> str:
    """A name as code, where it is one that code can hold."""
    return f"`{name}`" if _NAME.fullmatch(name) else _plain(name)
