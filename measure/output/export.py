"""A run as CSV for spreadsheets, line by line, as a summary in Markdown for a pull request, as figures, as a report.

All words of a run may have been written by anybody: they are text in every form, never a formula, a link or a mention.
"""

import csv
import itertools
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

from measure.claims import table as claims
from measure.judge import answer, reasons, sweep_findings
from measure.judge.findings import findings
from measure.judge.verdict import verdict
from measure.machine import environment
from measure.output import sweep_table, table
from measure.run import decision, text, why
from measure.run.encoding import encode
from measure.run.markdown import code, grid, plain
from measure.run.place import PROJECT
from measure.run.run import Run

_SAMPLES = ("strategy", "twin_of", "process", "round", "at_s", "seconds", "calls_per_sample")
# Signs at which a spreadsheet takes a text for a formula, and those that hide such a sign from who looks for it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# Beyond what all charts of a run take.
_PATIENCE_S = 240.0


def table_csv(run: Run) -> Iterator[str]:
    """One line for each strategy, of a sweep at each point; seconds and bytes. Of claims, one for each."""
    if run.kind == "claims":
        return _csv(claims.COLUMNS, claims.rows(run))
    shown = table.columns("csv")
    rows = ((at, row) for at, body in _bodies(run) for row in findings(body).rows)
    lines = [(*at, *(column.of(row) for column in shown)) for at, row in rows]
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
        (tuple(point.at[axis.name] for axis in run.axes), sweep_findings.comparison(run, point)) for point in run.points
    ]


def samples_csv(run: Run) -> Iterator[str]:
    """One line for each raw sample, those of the control's twin included. Of claims, with the key of what they needed,
    and the place on an axis in words."""
    if run.kind != "claims":
        return _csv((*(axis.name for axis in run.axes), *_SAMPLES), ((*at, *line) for at, line in _samples(run)))
    lines = (
        (item.need, ", ".join(f"{axis.name}={value}" for axis, value in zip(item.run.axes, at, strict=True)), *line)
        for item in run.evidence or ()
        if item.run is not None
        for at, line in _samples(item.run)
    )
    return _csv(("need", "at", *_SAMPLES), lines)


def _samples(run: Run) -> Iterator[tuple[tuple[int, ...], tuple[Any, ...]]]:
    """The raw samples of a comparison or a sweep, each with its place on the axes."""
    for at, body in _bodies(run):
        for item in body.measurements:
            for replica in item.replicas:
                for sample in zip(replica.rounds, replica.at_s, replica.samples_s, strict=False):
                    yield at, (item.strategy, item.twin_of, replica.id, *sample, replica.calls_per_sample)


def markdown(run: Run, link: str | None = None) -> str:
    """Verdict, table, environment in a fold, and the link, as GitHub and GitLab show them."""
    facts = [tuple(map(plain, fact)) for fact in environment.describe(run.environment)]
    parts = claims.markdown(run) if run.kind == "claims" else _measured(run)
    if run.status != "complete":  # below the verdict, and what it is of
        parts.insert(2, f"The run is not complete ({run.status}): {plain(run.stop_reason) or 'no reason is known'}.")
    if run.decision:
        first, *others = map(plain, decision.lines(run.decision))
        parts[:0] = [f"**Decision: {first}**", *others]
    parts += [
        _fold("Environment", grid(("fact", "value"), facts)),
        f"Run {run.id}, measured with Mapbench" + (f": <{link}>" if link else "."),
    ]
    return "\n\n".join(parts) + "\n"


def _fold(summary: str, body: str) -> str:
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"


def _measured(run: Run) -> list[str]:
    """The paragraphs on a comparison or a sweep."""
    about = (answer.heading(run), environment.machine(run.environment), run.created[:10])
    result = findings(run) if run.kind == "compare" else None
    words = verdict(result) if result else sweep_findings.verdict(sweep_findings.findings(run))
    parts = [f"**{plain(words)}**", ", ".join(map(plain, filter(None, about)))]
    if result is None:
        parts += _sweep(run)
    else:
        head, *body = table.cells(result)  # the terminal's table, in Markdown
        name = head.index("strategy")
        cells = [[(code if place == name else plain)(cell) for place, cell in enumerate(line)] for line in body]
        # One paragraph each: a list would make a bullet of a sentence.
        parts += [grid(head, cells), *map(plain, table.sentences(result))]
    # A list right after another one would be one with it.
    for title, *notes in (table.about_function(run) or [""], ["Good to know:", *table.notes(run)]):
        if notes:
            parts += [plain(title), "\n".join(f"- {plain(note)}" for note in notes)]
    explained = [row.slug for row in result.rows if why.explained(row.measurement.why)] if result else []
    if result and explained:
        words_of = reasons.predicates(result)
        parts.append(_fold("Why", "\n".join(f"- {code(slug)} {plain(words_of[slug])}" for slug in explained)))
    return parts


def _sweep(run: Run) -> list[str]:
    """A sweep's latencies, a line for each point; crossovers and fits."""
    result = sweep_findings.findings(run)
    strategies = sweep_table.strategies(result)
    head = [*(plain(axis.name) for axis in run.axes), *map(code, strategies), "result"]
    body = [
        [
            *(f"{point.at[axis.name]:,}" for axis in run.axes),
            *(plain(sweep_table.cell(result, point, slug).partition(sweep_table.LEADS)[0]) for slug in strategies),
            plain(result.statement(point)),
        ]
        for point in result.run.points
    ]
    notes = [*sweep_table.crossings(result), *sweep_table.fits(result), *sweep_table.left_out(run)]
    return [grid(head, body), "\n".join(f"- {plain(note)}" for note in notes)]


def figures(run: Run, forms: Sequence[str], folder: Path, name: str) -> list[Path]:
    """Draw all charts of a run as ``svg``, ``png`` or both into a folder; the files, whose names begin with ``name``.

    They are drawn in a process of its own: charts belong to `views`, which nothing here may import, and a JavaScript
    engine has no business in a server. Raises RuntimeError with a sentence.
    """
    printed = _drawn("the charts", encode(run), "views.charts.files", str(folder.resolve()), name, *forms)
    return [folder / Path(line).name for line in printed.decode().splitlines()]


def report(runs: Sequence[Run], into: IO[bytes] | int = subprocess.PIPE) -> bytes:
    """Runs as one HTML file, with their charts and run files in it, made as `figures` are. It may be ten times as long
    as those files: none of it is held here where it goes ``into`` a file. Raises as they do."""
    return _drawn("the report", b"[%s]" % b",".join(map(encode, runs)), "views.report.page", into=into)


def _drawn(what: str, data: bytes, module: str, *options: str, into: IO[bytes] | int = subprocess.PIPE) -> bytes:
    """What a module of `views` prints of ``data``."""
    command = [sys.executable, "-m", module, *options]
    try:
        done = subprocess.run(
            command, input=data, stdout=into, stderr=subprocess.PIPE, cwd=PROJECT, check=False, timeout=_PATIENCE_S
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"making {what} takes longer than {_PATIENCE_S:.0f} s") from None
    if done.returncode:
        end = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise RuntimeError(f"{what} could not be made: {''.join(end)[-500:]}")
    return done.stdout


def _csv(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> Iterator[str]:
    # What the file's `write` returns, `writerow` returns: the line.
    writer: Any = csv.writer(SimpleNamespace(write=str), lineterminator="\n")
    return (writer.writerow([_cell(value) for value in line]) for line in itertools.chain([head], lines))


def _cell(value: Any) -> Any:
    """A value that no spreadsheet takes for a formula: an apostrophe makes a text of what looks like one."""
    if not isinstance(value, str):
        return value
    shown = text.COMMANDS.sub("", value.replace("\r\n", "\n").replace("\r", "\n"))  # Python would not quote it alone
    return f"'{shown}" if shown.lstrip(" ").startswith(_FORMULA) else shown
