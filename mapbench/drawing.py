"""A run as HTML: the verdict, charts and the table, as a notebook shows them, and as a page that stands alone.

Without scripts, so that it is in what a notebook is exported as, too. It has the colours of the page that it is in, and
follows its light and dark: JupyterLab's and VS Code's own themes, elsewhere what the browser asks for.
"""

import html
import subprocess
import sys
from collections.abc import Iterable, Sequence

import msgspec

from measure.judge import answer, payoff, rules
from measure.model import text
from measure.model.place import PROJECT
from measure.model.run import Run
from measure.model.run_file import encode
from measure.output import columns, rows, sweep_table, table
from measure.sweep.lines import lines
from views.result import texts
from views.ui import look

# The charts are drawn by a process of their own, which loads what draws them and is gone afterwards.
_DRAW = "views.charts.inline"
# Signs of a cell that needs no second line.
_ONE_LINE = 30
# Beyond what the charts of any run take.
_PATIENCE_S = 120.0
_RULE = "rgba(128,128,128,.3)"
# What notebooks say of tables and lists is more particular than a class alone.
_RULES = (
    ".mapbench{font-size:14px;line-height:1.45;margin:.4em 0 1em}",
    ".mapbench p{margin:.2em 0}",
    ".mapbench .mb-case{opacity:.75;font-size:13px}",
    ".mapbench .mb-verdict{font-size:17px;font-weight:600;line-height:1.35;margin-bottom:.5em}",
    ".mapbench ul.mb-list{margin:.3em 0 .6em;padding-left:18px}",
    ".mapbench .mb-charts{display:grid;gap:1em 1.5em;margin:1em 0;"
    "grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr))}",
    ".mapbench figure{margin:0;min-width:0}",
    ".mapbench .mb-title{font-weight:600;margin-bottom:.2em}",
    ".mapbench figcaption{font-size:12px;opacity:.75;max-width:60ch}",
    # Names at the edge of a chart are longer in a reader's font than in the one that it was laid out with.
    ".mapbench svg{max-width:100%;height:auto;display:block;overflow:visible}",
    ".mapbench .mb-scroll{overflow-x:auto}",
    ".mapbench .mb-scroll table{border-collapse:collapse;border:none;margin:.5em 0;font-size:13px;"
    "font-variant-numeric:tabular-nums}",
    f".mapbench .mb-scroll :is(th,td){{border:none;border-bottom:1px solid {_RULE};padding:.25em .8em .25em 0;"
    "text-align:left;vertical-align:top;white-space:nowrap;max-width:none;background:none}",
    ".mapbench .mb-scroll th{font-weight:600}",
    ".mapbench .mb-scroll .mb-words{white-space:normal;min-width:14em}",
    ".mapbench summary{cursor:pointer;opacity:.75}",
    f".mapbench .mb-bar{{height:4px;max-width:560px;background:{_RULE};margin:.5em 0}}",
    ".mapbench .mb-bar div{height:100%;background:currentColor;opacity:.6}",
)
_DARK = f"{{{look.variables(look.DARK)}}}"
_STYLE = (
    f"<style>.mapbench{{{look.variables(look.LIGHT)}}}"
    f"@media (prefers-color-scheme:dark){{body:not([data-jp-theme-light]):not([class*=vscode-]) .mapbench{_DARK}}}"
    f":is(body[data-jp-theme-light=false],body.vscode-dark) .mapbench{_DARK}{''.join(_RULES)}</style>"
)
_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    "<title>{title}</title><style>:root{{color-scheme:light dark}}body{{font-family:system-ui,sans-serif;"
    "max-width:1200px;margin:1.5rem auto;padding:0 1rem}}</style><body>{fragment}</body></html>\n"
)


def framed(*parts: str) -> str:
    """Return parts of HTML in the frame that has the style of them all."""
    # Notebooks would take what is between two dollar signs, in an error's text say, for a formula.
    return f'<div class="mapbench mathjax_ignore tex2jax_ignore">{_STYLE}{"".join(parts)}</div>'


def strategy(slug: str, mapper: str, mode: str) -> str:
    """A strategy's name with its shape in its colour."""
    return look.strategy_html(slug, mapper, mode, look.variable(mapper))


def grid(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A table whose heads are text and whose cells are HTML."""
    heads = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    lines = "".join(f"<tr>{''.join(line)}</tr>" for line in body)
    return f'<div class="mb-scroll"><table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>'


def cell(shown: str, kind: str = "", columns_wide: int = 1) -> str:
    """A cell of HTML; ``kind`` is ``mb-words`` for sentences, which have more than one line."""
    wide = f' colspan="{columns_wide}"' if columns_wide > 1 else ""
    return f'<td class="{kind}"{wide}>{shown}</td>' if kind else f"<td{wide}>{shown}</td>"


def fragment(run: Run) -> str:
    """Return a run that has ended, for a page that has other things as well."""
    doubts, notes = _notes(run)
    return framed(
        _paragraph("mb-case", answer.heading(run)),
        _paragraph("mb-verdict", run.verdict),
        _paragraph("mb-case", look.sentence(f"{how}; {texts.KEPT}") if (how := ended(run)) else ""),
        _about_function(run),
        _listed(doubts),
        _charts(run),
        _table(run) if run.kind == "compare" else _latencies(run),
        f"<details><summary>Good to know</summary>{_listed(notes)}</details>" if notes else "",
    )


def page(run: Run) -> str:
    """Return a run that has ended as a page of its own."""
    return _PAGE.format(title=html.escape(f"Mapbench: {answer.heading(run)}"), fragment=fragment(run))


def _paragraph(kind: str, words: str) -> str:
    return f'<p class="{kind}">{html.escape(words)}</p>' if words else ""


def _listed(sentences: Sequence[str]) -> str:
    lines = "".join(f"<li>{html.escape(words)}</li>" for words in sentences)
    return f'<ul class="mb-list">{lines}</ul>' if lines else ""


def _about_function(run: Run) -> str:
    """The sentences on a function of a person's own, calm: they are no doubts."""
    said = table.function_notes(run)
    head = html.escape(table.function_head(run))
    return f'<div class="mb-case">{head}{_listed(said)}</div>' if said else ""


def ended(run: Run) -> str:
    """The words on how a run ended; empty where it did all that was asked for."""
    words = (texts.SWEEP_ENDED if run.kind == "sweep" else texts.ENDED).get(run.status, "")
    return f"{words}: {run.stop_reason}" if run.status == "interrupted" and run.stop_reason else words


def _notes(run: Run) -> tuple[list[str], list[str]]:
    """The sentences that the verdict has to be read with, and all else that the command line prints beside it."""
    if run.kind == "sweep":
        return [], [*sweep_table.crossings(run), *sweep_table.fits(run), *sweep_table.left_out(run)]
    doubts = [look.sentence(warning.message) for warning in run.warnings if warning.code in rules.OF_A_VERDICT]
    said = [*table.limits(run), *payoff.sentences(run)]
    said += [table.resolution(run.control)] if run.control else []
    others = [note for note in table.notes(run) if look.sentence(note) not in doubts]
    return doubts, [*said, *map(look.sentence, others)]


def _charts(run: Run) -> str:
    command = [sys.executable, "-m", _DRAW]
    done = subprocess.run(
        command, input=encode(run), capture_output=True, cwd=PROJECT, timeout=_PATIENCE_S, check=False
    )
    if done.returncode:
        return _paragraph("mb-case", "The charts could not be drawn.")
    charts = msgspec.json.decode(done.stdout, type=list[dict[str, str]])
    return f'<div class="mb-charts">{"".join(map(_figure, charts))}</div>' if charts else ""


def _figure(chart: dict[str, str]) -> str:
    return (
        f'<figure><div class="mb-title">{html.escape(chart["title"])}</div>'
        f'<div role="img" aria-label="{html.escape(chart["alt"])}">{chart["svg"]}</div>'
        f"<figcaption>{html.escape(chart['about'])}</figcaption></figure>"
    )


def _table(run: Run) -> str:
    """The table of the command line, a row for each strategy."""
    body = []
    for row in rows.listed(run):
        *figures, outcome = [column.written(row) for column in columns.of("text", run)]
        is_long = len(outcome) > _ONE_LINE
        empty = 0
        # The sentence on one that was not measured has the room of its figures: behind them it would be out of sight.
        while is_long and figures[-1] == text.MISSING:
            figures.pop()
            empty += 1
        cells = [
            cell(strategy(row.slug, row.mapper, row.mode) if column.unit.code else html.escape(written))
            for column, written in zip(columns.of("text", run), figures, strict=False)
        ]
        body.append([*cells, cell(html.escape(outcome), "mb-words" if is_long else "", empty + 1)])
    return grid(table.head(run), body)


def _latencies(run: Run) -> str:
    """A line's latencies at each point; a map is its own table."""
    if len(run.axes) > 1:
        return ""
    known = {line.slug: line for line in lines(run.points, run.axes)}
    head, *body = sweep_table.latencies(run)
    names = {slug: cell(strategy(slug, line.mapper, line.mode)) for slug, line in known.items()}
    shown = grid(head, ([names[slug], *(cell(html.escape(value)) for value in values)] for slug, *values in body))
    return shown + _paragraph("mb-case", f"{sweep_table.LEADS} leads, or ties with the leader")
