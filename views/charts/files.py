"""A run's charts as files that stand alone: SVG and PNG (`python -m views.charts.files`).

They are drawn by a process of their own: a JavaScript engine has no business in the server.
"""

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import altair as alt
import pandas as pd
import vl_convert

from measure.judge import answer, sweep_findings
from measure.judge.findings import findings
from measure.judge.lines import readable
from measure.run import place
from measure.run.encoding import decode
from measure.run.run import Run
from views.charts import (
    base,
    latency_memory_error,
    memory_timeline,
    names,
    samples,
    sweep_front,
    sweep_lines,
    sweep_map,
    total_time,
)
from views.ui import look

_SCALE = 2.0  # pixels of a PNG for each of an SVG
_PAPER, _INK = "#ffffff", "#16202e"
_WIDTH, _WIDE = 720, 1000  # pixels; a picture of three panels is wide
_LINE = 160  # signs of a wide one's subtitle
# Few fonts have them, and they would change the font of what stands beside them.
_SIGNS = f"^[{''.join(look.GLYPHS.values())}✗] "


def _charts(run: Run) -> Iterator[tuple[str, str, base.Spec, pd.DataFrame, str]]:
    """The charts of a run: the name of the file, a title, specification and frame, and what its marks mean."""
    if run.kind == "compare":
        result = findings(run)
        slugs = [row.slug for row in result.rows]
        every = samples.one_in(run, slugs)
        title = "Latency of one call, memory and largest error"
        drawn = {**latency_memory_error.specification(result), "width": _WIDE}
        yield "comparison", title, drawn, latency_memory_error.frame(result), latency_memory_error.legend(result)
        yield "break-even", "Total time by number of calls", total_time.SPEC, total_time.frame(result), ""
        note = f"one sample in {every} is drawn" if every > 1 else ""
        yield "samples", "Every sample, by round", samples.SPEC, samples.frame(run, slugs), note
        yield "timeline", "Memory held over one call", memory_timeline.SPEC, memory_timeline.frame(run.measurements), ""
    elif run.kind == "sweep":
        sweep = sweep_findings.findings(run)
        if len(run.axes) == 1:
            note = "band: 95% CI; ring: one overtakes another, with its interval; ✕ above: failed or was not run"
            for quantity in ("latency", "memory"):
                drawn = sweep_lines.specification(quantity, run.axes[0])
                yield quantity, sweep_lines.TITLES[quantity], drawn, sweep_lines.frame(sweep, quantity), note
        else:
            drawn = sweep_map.sized(sweep_map.specification(*(axis.name for axis in run.axes)), sweep.run)
            letters = ", ".join(f"{letter}: {name}" for name, letter in sweep_map.letters(sweep).items())
            note = ". ".join(filter(None, (letters, sweep_map.about(sweep))))
            yield "map", "Fastest strategy", drawn, sweep_map.frame(sweep), note
        if subject := sweep_front.subject(sweep):
            at, of = subject
            title = f"Latency against memory, {readable(at) or 'all points'}: nothing beats what the line joins"
            yield "front", title, sweep_front.SPEC, sweep_front.frame(of), sweep_front.sentence(of)


def of(run: Run, *wanted: str) -> dict[str, base.Spec]:
    """The charts of a run, all or those that are wanted, by the names of their files, each with its data, title and
    colours; none that has nothing to show."""
    made = {}
    for name, title, drawn, frame, note in _charts(run):
        if frame.empty or (wanted and name not in wanted):
            continue
        drawn = names.sized(drawn, frame) if "beside" in frame else drawn
        for field in {"strategy", "note", "factor"} & set(frame):
            frame[field] = frame[field].str.replace(_SIGNS, "", regex=True)
        head = {"text": title, "subtitle": [answer.heading(run), *textwrap.wrap(note, _LINE)], "anchor": "start"}
        made[name] = {
            "$schema": "https://vega.github.io/schema/vega-lite/v6.json", "width": _WIDTH, **drawn,
            "background": _PAPER, "padding": 14, "title": {**head, "offset": 18, "subtitlePadding": 4},
            "config": {**base.theme(_INK)["config"], "range": {"category": list(look.LIGHT)}, "view": {"stroke": None}},
            "data": {"name": "frame", "values": frame.astype(object).where(frame.notna(), None).to_dict("records")},
        }  # fmt: skip
    return made


def chart(run: Run, name: str) -> alt.Chart | None:
    """A chart as Altair's, which notebooks draw; None where the run has nothing to show in it."""
    made = of(run, name)
    return alt.Chart.from_dict(made[name]) if made else None


def convert(drawn: base.Spec, form: str) -> bytes:
    """The picture's bytes. Nothing is fetched: all that a chart needs is in its specification."""
    if form == "svg":
        return vl_convert.vegalite_to_svg(drawn, allowed_base_urls=[]).encode()
    return bytes(vl_convert.vegalite_to_png(drawn, scale=_SCALE, allowed_base_urls=[]))


def main(folder: str, begin: str, *forms: str) -> int:
    """Read a run file on stdin, and write all its charts into a folder, in the ``forms`` svg, png or both, as files
    whose names ``begin`` so; print their paths."""
    run = decode(sys.stdin.buffer.read())  # a file from elsewhere has been checked by whoever let it in
    for name, drawn in of(run).items():
        for form in forms:
            path = Path(folder, f"{begin}.{name}.{form}")
            place.write(path, [convert(drawn, form)])
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
