"""Runs as one HTML file that opens without a network and without Mapbench (`python -m views.report.page`).

Charts draw themselves in it, so it is made by a process of its own, as `views.charts.files` is. Runs may come from
anybody: their texts are escaped, and by the page's policy nothing is fetched and no script runs but its own one.
"""

import base64
import contextlib
import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
import msgspec
import vl_convert

from measure.claims import scripts, verdicts
from measure.judge import answer, findings, pair, sweep_findings
from measure.judge.lines import line_of, readable
from measure.judge.verdict import verdict
from measure.machine import environment
from measure.output import command, pair_table, sweep_table, table
from measure.run import text
from measure.run.encoding import decode
from measure.run.run import Run
from measure.store import imports
from views.charts import base, failures, files
from views.result import claims, compare, heading, problems
from views.ui import look
from workloads import elems_file

_HERE = Path(__file__).parent
# The page's style sheet turns between light and dark, so that no chart is drawn anew; paper is always light.
_LINES = {"gridColor": "var(--line)", "domainColor": "var(--line)", "tickColor": "var(--line)"}
_WORDS = {"labelColor": base.INK, "titleColor": base.INK}
_CONFIG = {
    **base.theme()["config"],
    "axis": {**_LINES, **_WORDS, "titleFontWeight": 600},
    "legend": _WORDS,
    "font": "system-ui, sans-serif",
    "range": {"category": [f"light-dark({light}, {dark})" for light, dark in zip(look.LIGHT, look.DARK, strict=True)]},
    "view": {"stroke": None},
}
_FITTED: base.Spec = {
    "autosize": {"type": "fit-x", "contains": "padding"}, "padding": 4, "width": "container", "config": _CONFIG,
    "background": "transparent",
}  # fmt: skip


# --- sections --------------------------------------------------------------------------------------------------------


def section(run: Run) -> dict[str, Any]:
    """A run as the template shows it, in plain text but for what is named as HTML, and the table of claims. Of failures
    the names, the reason, and whole texts, each with the names that it is of."""
    version, own = run.environment.get("tensorflow"), run.request.own
    when = f"{datetime.fromisoformat(run.created).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    origin = (when, environment.machine(run.environment), version and f"TensorFlow {version}")
    of_its_kind = {"compare": _comparison, "sweep": _sweep, "claims": _claims}[run.kind]
    return {
        "run": run, "heading": answer.heading(run), "origin": " · ".join(filter(None, origin)), "charts": _charts(run),
        "about": table.about_function(run)[1:], "command": command.of(run), "own_code": own.given.code if own else "",
        "facts": environment.describe(run.environment), **of_its_kind(run),
    }  # fmt: skip


def _charts(run: Run) -> list[tuple[str, str, str]]:
    """Title, meaning of the marks, and specification of each chart, of the width that there is for it."""
    made = []
    for drawn in files.of(run).values():
        title = drawn.pop("title")
        described = {**drawn, **_FITTED, "description": title["text"]}
        made.append((title["text"], " ".join(title["subtitle"][1:]), _as_data(msgspec.json.encode(described))))
    return made


def _as_data(json: bytes) -> str:
    """JSON that no parser of HTML takes for an end of the script that it stands in: `<` is in its strings only."""
    return json.decode().replace("<", "\\u003c")


def _comparison(run: Run) -> dict[str, Any]:
    result = findings.findings(run)
    slugs = [row.slug for row in result.rows]
    head, *body = table.cells(result)  # why a strategy did not work stands below
    return {
        "verdict_html": look.named_html(verdict(result), slugs), "ended": compare.ended(result),
        "doubts": heading.doubts_of(result),
        "others_html": [look.named_html(line, slugs) for line in answer.others(result)],
        "table": [head, *([*line[:-1], row.status] for line, row in zip(body, result.rows, strict=True))],
        "below": table.sentences(result), "notes": problems.notes(result),
        "failures": [
            (", ".join(row.slug for row in failure.rows), f"{failure.status}: {failure.sentence}", failure.details)
            for failure in problems.failures(result)
        ],
        "codes": [(row.slug, row.measurement.code.source) for row in result.rows if row.measurement.code],
    }  # fmt: skip


def _sweep(run: Run) -> dict[str, Any]:
    result = sweep_findings.findings(run)
    slugs, points = sweep_table.strategies(result), result.run.points
    lines = [
        [f"{point.at[axis.name]:,}" for axis in run.axes] + [sweep_table.cell(result, point, slug) for slug in slugs]
        for point in points
    ]
    codes = {
        line_of(item.strategy, run.axes): (f"{item.strategy} at {readable(point.at)}", item.code.source)
        for point in reversed(points)
        for item in point.measurements
        if item.code
    }
    leads, turns, fits = f"{sweep_table.MARKS}.", sweep_table.crossings, sweep_table.fits
    return {
        "verdict_html": look.named_html(sweep_findings.verdict(result), slugs), "doubts": heading.doubts(run),
        "ended": _ended(run), "table": [[*(axis.name for axis in run.axes), *slugs], *lines],
        "below": [leads, *turns(result), *fits(result)],
        "failures": [
            (", ".join(line.slug for line in alike), words, ()) for alike, words in failures.by_reason(result.lines)
        ],
        "notes": [
            f"{readable(point.at)}: {text.standing(point.status, point.reason)}"
            for point in points
            if point.status != "complete" and not point.ranking and point.reason
        ],
        "codes": [codes[slug] for slug in slugs if slug in codes],
    }  # fmt: skip


def _claims(run: Run) -> dict[str, Any]:
    tries, gone, evidence = verdicts.of_claims(run), verdicts.gone(run), run.evidence or []
    names = {need.key: claim.id for claim, _ in tries for need in claim.needs}
    ends = [(names.get(item.need, item.need), item, item.script) for item in evidence]
    lines = [
        (look.code_html(claim.sentence), judged.word,
         f"{claims.words_html(judged.sentence, claim)} {look.code_html(claim.advice)}")
        for claim, judged in tries
    ]  # fmt: skip
    return {
        "verdict_html": look.named_html(verdicts.summary(run), ()), "doubts": heading.doubts(run), "ended": _ended(run),
        "table": [("claim", "here", "seen, and what to do"), *lines],
        "below": [f"No longer tried: {', '.join(gone)}."] if gone else [],
        "failures": [
            (name, reason, ()) for name, item, end in ends if (reason := item.reason or (end.error if end else ""))
        ],
        "codes": [(name, scripts.whole(end.source)) for name, _, end in ends if end],
    }  # fmt: skip


def _ended(run: Run) -> str:
    """The reason why a sweep or claims are not complete."""
    reason = text.shortened(text.standing(run.status, run.stop_reason), look.MOST_SIGNS)
    return "" if run.status == "complete" else look.sentence(reason)


# --- the page --------------------------------------------------------------------------------------------------------


def made(run_files: Sequence[bytes]) -> Iterator[str]:
    """The page of runs, part by part, of which each file is in it to the byte."""
    sections = [section(decode(file)) for file in run_files]
    style, ours = ((_HERE / name).read_text("utf-8") for name in ("report.css", "report.js"))
    script = vl_convert.javascript_bundle(ours)
    hash_ = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    around = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return around.get_template("report.html.jinja").generate(
        sections=sections, pairs=_pairs(sections), style=style, script=script, hash=hash_,
        files=(_as_data(file) for file in run_files), begins=imports.RUN_BEGINS.decode(),
        own_file=command.OWN_FILE, elems=elems_file.NAME,
    )  # fmt: skip


def _pairs(sections: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every comparison beside the first one of its case, with table and sentences."""
    made, firsts = list[dict[str, Any]](), dict[str, Mapping[str, Any]]()
    for other in (one for one in sections if one["run"].kind == "compare"):
        if (first := firsts.setdefault(other["heading"], other)) is not other:
            with contextlib.suppress(ValueError):  # they have no strategy in common
                both = pair.of(first["run"], other["run"])
                texts = {"lines": pair_table.cells(both), "sentences": pair_table.sentences(both), "facts": both.facts}
                made.append({"first": first, "second": other, "names": [*both.names], **texts})
    return made


def main() -> int:
    """Read a list of run files as JSON on stdin, and write their report to stdout."""
    given = msgspec.json.decode(sys.stdin.buffer.read(), type=list[msgspec.Raw])
    sys.stdout.buffer.writelines(part.encode() for part in made([bytes(file) for file in given]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
