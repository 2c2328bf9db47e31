"""A run as CSV for spreadsheets, line by line, and as a summary in Markdown for a pull request.

All words of a run may have been written by anybody: they are text in every form, never a formula, a link or a mention.
"""

import csv
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from measure.claims import table as claims
from measure.judge import payoff, reasons, sweep_analysis
from measure.judge.lines import leaders, line_of
from measure.machine import environment
from measure.output import columns, rows, sweep_table, table
from measure.run import text, why
from measure.run.markdown import code, grid, plain
from measure.run.run import Run

_SAMPLES = ("strategy", "twin_of", "process", "round", "at_s", "seconds", "calls_per_sample")
# Signs at which a spreadsheet takes a text for a formula, and those that hide such a sign from who looks for it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def table_csv(run: Run) -> Iterator[str]:
    """One line for each strategy, of a sweep at each point; seconds and bytes. Of claims, one for each."""
    if run.kind == "claims":
        return _csv(claims.COLUMNS, claims.rows(run))
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
    return [
        (tuple(point.at[axis.name] for axis in run.axes), sweep_analysis.comparison(run, point)) for point in run.points
    ]


def samples_csv(run: Run) -> Iterator[str]:
    """One line for each raw sample, those of the control's twin included. Of claims, with the key of what they needed,
    and the place on an axis in words."""
    if run.kind == "claims":
        within = [(item.need, item.run) for item in run.evidence or () if item.run is not None]
        return _csv(
            ("need", "at", *_SAMPLES),
            (
                (need, ", ".join(f"{axis.name}={value}" for axis, value in zip(inner.axes, at, strict=True)), *line)
                for need, inner in within
                for at, *line in _samples(inner)
            ),
        )
    return _csv((*(axis.name for axis in run.axes), *_SAMPLES), ((*at, *line) for at, *line in _samples(run)))


def _samples(run: Run) -> Iterator[tuple[Any, ...]]:
    """The raw samples of a comparison or a sweep, each after its place on the axes."""
    for at, body in _bodies(run):
        for item in body.measurements:
            for replica in item.replicas:
                for number, at_s, sample_s in zip(replica.rounds, replica.at_s, replica.samples_s, strict=False):
                    yield at, item.strategy, item.twin_of, replica.id, number, at_s, sample_s, replica.calls_per_sample


def markdown(run: Run, link: str | None = None) -> str:
    """Verdict, table, environment in a fold, and the link, as GitHub and GitLab show them."""
    return "\n\n".join([*(claims.markdown(run) if run.kind == "claims" else _measured(run)), *_end(run, link)]) + "\n"


def _measured(run: Run) -> list[str]:
    """The paragraphs on a comparison or a sweep."""
    request = run.request
    swept = {axis.name: f"{min(axis.values):,} to {max(axis.values):,}" for axis in run.axes}
    sizes = {name: f"{value:,}" for name, value in request.size.items()} | swept
    size = ", ".join(f"{plain(name)} {value}" for name, value in sizes.items())
    about = [f"{code(request.title)} at {size}", plain(request.dtype), plain(request.device)]
    about += [plain(words) for words in (environment.machine(run.environment), run.created[:10]) if words]
    parts = [f"**{plain(run.verdict or 'No verdict was reached.')}**", ", ".join(about)]
    if run.kind == "sweep":
        parts += _sweep(run)
    else:
        parts.append(grid(table.head(run), _body(run)))
        # One paragraph each: a list would make a bullet of a sentence.
        parts += [plain(line) for line in (*table.limits(run), *payoff.sentences(run))]
    if run.control is not None:
        parts.append(table.resolution(run.control))
    if run.status != "complete":
        parts.append(f"The run is not complete ({run.status}): {plain(run.stop_reason) or 'no reason is known'}.")
    if about := table.function_notes(run):
        parts += [plain(table.function_head(run)), "\n".join(f"- {plain(note)}" for note in about)]
    if notes := table.notes(run):
        # A list right after another one would be one with it.
        parts += ["Good to know:"] if about else []
        parts.append("\n".join(f"- {plain(note)}" for note in notes))
    if why_so := _reasons(run):
        parts.append(f"<details>\n<summary>Why</summary>\n\n{why_so}\n\n</details>")
    return parts


def _end(run: Run, link: str | None) -> list[str]:
    """The paragraphs at the end of every summary."""
    facts = [tuple(map(plain, fact)) for fact in environment.describe(run.environment)]
    return [
        f"<details>\n<summary>Environment</summary>\n\n{grid(('fact', 'value'), facts)}\n\n</details>",
        f"Run {run.id}, measured with Mapbench" + (f": <{link}>" if link else "."),
    ]


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
    head = [*(plain(axis.name) for axis in run.axes), *map(code, strategies), "leads"]
    body = [
        [
            *(f"{point.at[axis.name]:,}" for axis in run.axes),
            *(plain(cells.get((number, slug), "–")) for slug in strategies),
            ", ".join(map(code, leaders(point, run.axes))) or plain(point.status),
        ]
        for number, point in enumerate(run.points)
    ]
    notes = [*sweep_table.crossings(run), *sweep_table.fits(run), *sweep_table.left_out(run)]
    return [grid(head, body), "\n".join(f"- {plain(note)}" for note in notes)]


def _reasons(run: Run) -> str:
    """A sentence for each strategy that has been explained."""
    explained = {item.strategy for item in run.measurements if why.explained(item.why) is not None}
    if run.kind != "compare" or not explained:
        return ""
    return "\n".join(f"- {plain(reason)}" for slug, reason in reasons.sentences(run).items() if slug in explained)


def _body(run: Run) -> list[list[str]]:
    """The cells of the terminal's table, in Markdown."""
    return [
        [(code if column.csv == "strategy" else plain)(column.written(row)) for column in columns.of("text", run)]
        for row in rows.listed(run)
    ]


class _Echo:
    """A file that hands back what is written, which is what a writer's `writerow` returns."""

    def write(self, text: str) -> str:
        return text


def _csv(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> Iterator[str]:
    writer: Any = csv.writer(_Echo(), lineterminator="\n")
    for line in itertools.chain([head], lines):
        yield writer.writerow([_cell(value) for value in line])


def _cell(value: Any) -> Any:
    """A value that no spreadsheet takes for a formula: an apostrophe makes a text of what looks like one."""
    if not isinstance(value, str):
        return value
    shown = text.COMMANDS.sub("", value.replace("\r\n", "\n").replace("\r", "\n"))  # Python would not quote it alone
    return f"'{shown}" if shown.lstrip(" ").startswith(_FORMULA) else shown
