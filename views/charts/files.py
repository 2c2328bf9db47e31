"""A run's charts as files that stand alone: SVG and PNG (`python -m views.charts.files`).

They are drawn by a process of their own: a JavaScript engine with its memory has no business in the server, and the run
that it reads may come from anybody.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import altair as alt
import pandas as pd
import vl_convert

from measure.judge import answer, limit, sweep_findings
from measure.judge.findings import Findings, findings
from measure.judge.sweep_findings import SweepFindings
from measure.run.encoding import decode
from measure.run.run import Run
from views.charts import base, picture, samples, sweep_front, sweep_lines, sweep_map, timeline, totals
from views.charts.base import Spec
from views.ui import look

FORMATS = ("svg", "png")
_SCALE = 2.0  # pixels of a PNG for each of an SVG
_WIDTH, _PAPER, _INK = 640, "#ffffff", "#16202e"
# Few fonts have them, and they would change the font of what stands beside them.
_SIGNS = f"^[{''.join(look.GLYPHS.values())}✗] "


# Makes a chart of findings: its specification and its frame; an empty frame is no chart.
Draw = Callable[[Any], tuple[Spec, pd.DataFrame]]


class Picture(NamedTuple):
    """One chart of a run. ``legend`` is true if its marks are told apart by colour and shape alone; ``note`` makes a
    line for the subtitle of the findings."""

    title: str
    draw: Draw
    legend: bool = False
    note: Callable[[Any], str] = lambda result: ""


def _panel(panel: str) -> Draw:
    return lambda result: (picture.specification(result, panels=(panel,)), picture.frame(result))


def _samples(result: Findings) -> str:
    every = samples.one_in(result.run, [row.slug for row in result.rows])
    return f"one sample in {every} is drawn" if every > 1 else ""


def _swept(quantity: sweep_lines.Quantity) -> Draw:
    return lambda result: (
        sweep_lines.specification(quantity, result.run.axes[0]), sweep_lines.frame(result, quantity)
    )  # fmt: skip


def _map(result: SweepFindings) -> tuple[Spec, pd.DataFrame]:
    drawn = sweep_map.specification(*(axis.name for axis in result.run.axes))
    return sweep_map.sized(drawn, result.run), sweep_map.frame(result)


def _letters(result: SweepFindings) -> str:
    return ", ".join(f"{letter}: {name}" for name, letter in sweep_map.letters(result).items())


COMPARE = {
    "latency": Picture(
        "Latency of one call, with its 95 % interval", _panel("latency"),
        note=lambda result: "band: a tie" + f"; dashed: {limit.FLOOR}" * limit.tells(result.run),
    ),
    "memory": Picture(
        "Memory of one call: output solid, temporary pale", _panel("memory"), note=lambda result: "tick: process peak"
    ),
    "break-even": Picture(
        "Total time by number of calls", lambda result: (totals.SPEC, totals.frame(result)), legend=True
    ),
    "samples": Picture(
        "Every sample, by round",
        lambda result: (samples.SPEC, samples.frame(result.run, [row.slug for row in result.rows])),
        legend=True, note=_samples,
    ),
    "timeline": Picture(
        "Memory held over one call",
        lambda result: (timeline.SPEC, timeline.frame(timeline.known(result.run.measurements))), legend=True,
    ),
}  # fmt: skip
_FRONT = Picture(
    "Latency against memory: nothing beats what the line joins",
    lambda result: (sweep_front.SPEC, sweep_front.frame(sweep_front.subject(result.run)[1])),
)
LINES = {
    "latency": Picture("Latency of one call, with its 95 % interval", _swept("latency"), legend=True),
    "memory": Picture("Peak memory of one call", _swept("memory"), legend=True),
    "front": _FRONT,
}
MAP = {
    "map": Picture(
        "Who is fastest", _map, legend=True,
        note=lambda result: ". ".join(filter(None, (_letters(result), sweep_map.about(result)))),
    ),
    "front": _FRONT,
}  # fmt: skip


def of(run: Run) -> dict[str, Picture]:
    """Return the charts that a run of its kind has, by name: that of claims has those of its evidence."""
    if run.kind == "sweep":
        return LINES if len(run.axes) == 1 else MAP
    return COMPARE if run.kind == "compare" else {}


def _findings(run: Run) -> Findings | SweepFindings:
    return findings(run) if run.kind == "compare" else sweep_findings.findings(run)


def specification(run: Run, name: str) -> Spec | None:
    """Return the chart with its data, title and colours; None where the run has nothing to show in it."""
    chosen, result = of(run)[name], _findings(run)
    drawn, frame = chosen.draw(result)
    if frame.empty:
        return None
    for field in {"strategy", "note", "factor"} & set(frame):
        frame[field] = frame[field].str.replace(_SIGNS, "", regex=True)
    used = {field: sorted(set(frame[field]) - {""}) for field in ("colour", "mode") if field in frame}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": _WIDTH,
        "background": _PAPER,
        "title": {
            "text": chosen.title, "subtitle": [answer.heading(run), *filter(None, [chosen.note(result)])],
            "anchor": "start", "offset": 18, "subtitlePadding": 4,
        },
        "config": {"range": {"category": list(look.LIGHT)}, "view": {"stroke": None}},
        **_alone(drawn, used if chosen.legend else {}),
        "data": {"name": "frame", "values": frame.astype(object).where(frame.notna(), None).to_dict("records")},
        "padding": 14,
    }  # fmt: skip


def chart(run: Run, name: str) -> alt.Chart | None:
    """Return the chart as Altair's, which notebooks draw; None where the run has nothing to show in it."""
    drawn = specification(run, name)
    return None if drawn is None else alt.Chart.from_dict(drawn)


def _alone(part: Any, used: dict[str, list[str]]) -> Any:
    """Return the specification for use without a page around it: ink has a colour, and a legend stands where the page
    has its own."""
    if isinstance(part, list):
        return [_alone(item, used) for item in part]
    if not isinstance(part, dict):
        return _INK if part == base.INK else part
    alone = {key: _alone(value, used) for key, value in part.items()}
    if "legend" in alone and used:
        # Below: at the right there are names.
        values = used.get(alone.get("field", ""), [])
        alone["legend"] = {"title": None, "orient": "bottom", "symbolOpacity": 1, "values": values}
    return alone


def convert(run: Run, name: str, form: str) -> bytes | None:
    """Return the picture's bytes; None where the run has nothing to show in it."""
    drawn = specification(run, name)
    if drawn is None:
        return None
    # Nothing is fetched: all that a chart needs is in its specification.
    if form == "svg":
        return vl_convert.vegalite_to_svg(drawn, allowed_base_urls=[]).encode()
    return bytes(vl_convert.vegalite_to_png(drawn, scale=_SCALE, allowed_base_urls=[]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Read a run file on stdin, and write all its charts into a folder; print their paths."""
    parser = argparse.ArgumentParser(prog="python -m views.charts.files", description=main.__doc__)
    parser.add_argument("forms", nargs="+", choices=FORMATS)
    parser.add_argument("--into", type=Path, default=Path())
    parser.add_argument("--name", default="run", help="what the files' names begin with")
    chosen = parser.parse_args(arguments)
    run = decode(sys.stdin.buffer.read())  # a file from elsewhere has been checked by whoever let it in
    chosen.into.mkdir(parents=True, exist_ok=True)
    for form in chosen.forms:
        for name in of(run):
            if (data := convert(run, name, form)) is not None:
                path = chosen.into / f"{chosen.name}.{name}.{form}"
                path.write_bytes(data)
                print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
