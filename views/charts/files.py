"""A run's charts as files that stand alone: SVG and PNG (`python -m views.charts.files`).

They are drawn by a process of their own: a JavaScript engine with its memory has no business in the server, and the run
that it reads may come from anybody.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import altair as alt
import pandas as pd
import vl_convert

from measure.output import rows
from measure.output.rows import Row
from measure.run.encoding import decode, encode
from measure.run.place import PROJECT
from measure.run.run import Run
from views.charts import base, latency, memory, samples, sweep_front, sweep_lines, sweep_map, texts, timeline, totals
from views.charts.base import Spec
from views.ui import look

# Beyond what any chart takes.
_PATIENCE_S = 120.0
_SCALE = 2.0  # pixels of a PNG for each of an SVG
_SIGNS = f"^[{''.join(look.GLYPHS.values())}] "
FORMATS = ("svg", "png")


# What a picture stands on, and the colour of its ink.
_WIDTH, _PAPER, _INK = 640, "#ffffff", "#16202e"


@dataclass(frozen=True)
class Picture:
    """One chart of a run.

    ``draw`` returns its specification and its frame; an empty frame is no chart. ``legend`` is true if its marks are
    told apart by colour and shape alone; ``note`` returns a line for the subtitle."""

    title: str
    draw: Callable[[Run, list[Row]], tuple[Spec, pd.DataFrame]]
    legend: bool = False
    note: Callable[[Run], str] = lambda run: ""


def _latency(run: Run, shown: list[Row]) -> tuple[Spec, pd.DataFrame]:
    floor = latency.floor_of(run)
    return base.sized(latency.specification(floor=floor is not None), len(shown)), latency.frame(shown, floor)


def _memory(run: Run, shown: list[Row]) -> tuple[Spec, pd.DataFrame]:
    drawn = base.sized(memory.specification(memory.unit(shown), floor=False), len(shown))
    return drawn, memory.frame(shown)


def _totals(run: Run, shown: list[Row]) -> tuple[Spec, pd.DataFrame]:
    return totals.SPEC, totals.frame(shown)


def _samples(run: Run, shown: list[Row]) -> tuple[Spec, pd.DataFrame]:
    return samples.SPEC, samples.frame(run, [row.slug for row in shown])


def _thinned(run: Run) -> str:
    every = samples.one_in(run, {m.strategy for m in run.measurements})
    return texts.ONE_IN.format(every=every) if every > 1 else ""


def _timeline(run: Run, shown: list[Row]) -> tuple[Spec, pd.DataFrame]:
    return timeline.specification(share=True), timeline.frame(timeline.known(run.measurements), share=True)


COMPARE = {
    "latency": Picture(texts.LATENCY_TITLE, _latency),
    "memory": Picture(texts.MEMORY_TITLE, _memory),
    "break-even": Picture(texts.TOTALS_TITLE, _totals, legend=True),
    "samples": Picture(texts.SAMPLES_TITLE, _samples, legend=True, note=_thinned),
    "timeline": Picture(texts.TIMELINE_TITLE, _timeline, legend=True),
}


def _swept(quantity: sweep_lines.Quantity) -> Callable[[Run, list[Row]], tuple[Spec, pd.DataFrame]]:
    def draw(run: Run, shown: list[Row]) -> tuple[Spec, pd.DataFrame]:
        return sweep_lines.specification(quantity, run.axes[0]), sweep_lines.frame(run, quantity)

    return draw


def _map(run: Run, shown: list[Row]) -> tuple[Spec, pd.DataFrame]:
    drawn = sweep_map.specification(*(axis.name for axis in run.axes))
    return sweep_map.sized(drawn, run), sweep_map.frame(run)


def _letters(run: Run) -> str:
    return ", ".join(f"{letter}: {name}" for name, letter in sweep_map.letters(run).items())


def _front(run: Run, shown: list[Row]) -> tuple[Spec, pd.DataFrame]:
    return sweep_front.SPEC, sweep_front.frame(sweep_front.subject(run), None)


_FRONT = {"front": Picture(texts.FRONT_TITLE, _front)}
LINES = {
    "latency": Picture(texts.LATENCY_TITLE, _swept("latency"), legend=True),
    "memory": Picture(texts.PEAK_TITLE, _swept("memory"), legend=True),
    **_FRONT,
}
MAP = {
    "map": Picture(texts.MAP_TITLE, _map, legend=True, note=_letters),
    **_FRONT,
}
NAMES = tuple(dict.fromkeys((*COMPARE, *LINES, *MAP)))


def of(run: Run) -> dict[str, Picture]:
    """Return the charts that a run of its kind has, by name."""
    if run.kind == "claims":
        return {}  # the charts are those of its evidence
    if run.kind == "compare":
        return COMPARE
    return LINES if len(run.axes) == 1 else MAP


def titles(run: Run) -> dict[str, str]:
    """Return the titles of the charts in which the run has something to show, by their names."""
    shown = rows.make(run, rows.choose_baseline(run))
    return {name: picture.title for name, picture in of(run).items() if not picture.draw(run, shown)[1].empty}


def specification(run: Run, name: str) -> Spec | None:
    """Return the chart with its data, title and colours; None where the run has nothing to show in it."""
    picture, shown_rows = of(run)[name], rows.make(run, rows.choose_baseline(run))
    drawn, frame = picture.draw(run, shown_rows)
    if frame.empty:
        return None
    # Signs that few fonts have would change the font of what stands beside them.
    if "strategy" in frame:
        frame["strategy"] = frame["strategy"].str.replace(_SIGNS, "", regex=True)
    if "value" in frame:
        frame["value"] = frame["value"].str.replace("✕", "(wrong)")
    used = {field: sorted(set(frame[field]) - {""}) for field in ("colour", "mode") if field in frame}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": _WIDTH,
        "background": _PAPER,
        "title": _title(run, picture),
        "config": {"range": {"category": list(look.LIGHT)}, "view": {"stroke": None}},
        **_alone(drawn, used if picture.legend else {}),
        "data": {"name": "frame", "values": frame.astype(object).where(frame.notna(), None).to_dict("records")},
        "padding": 14,
    }


def chart(run: Run, name: str) -> alt.Chart | None:
    """Return the chart as Altair's, which notebooks draw; None where the run has nothing to show in it."""
    drawn = specification(run, name)
    return None if drawn is None else alt.Chart.from_dict(drawn)


def _title(run: Run, picture: Picture) -> Spec:
    about = f"{run.request.title}, {_size(run)}, {run.request.dtype}, {run.request.device}"
    return {
        "text": picture.title,
        "subtitle": [about, *filter(None, [picture.note(run)])],
        "anchor": "start",
        "offset": 18,
        "subtitlePadding": 4,
    }


def _size(run: Run) -> str:
    swept = {axis.name: texts.SWEPT.format(first=axis.values[0], last=axis.values[-1]) for axis in run.axes}
    fixed = {key: f"{value:,}" for key, value in run.request.size.items()}
    return ", ".join(f"{key} {value}" for key, value in {**fixed, **swept}.items())


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


def render(run: Run, name: str, form: str, file: IO[bytes]) -> None:
    """Write a picture into a file that the system knows too, drawn by a process of its own. Raises RuntimeError where
    there is none."""
    command = [sys.executable, "-m", "views.charts.files", name, form]
    try:
        done = subprocess.run(
            command,
            input=encode(run),
            stdout=file,
            stderr=subprocess.PIPE,
            cwd=PROJECT,
            timeout=_PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(texts.NOT_DRAWN.format(reason=texts.TOOK_LONG.format(seconds=_PATIENCE_S))) from None
    if done.returncode:
        raise RuntimeError(texts.NOT_DRAWN.format(reason=done.stderr.decode(errors="replace")[-500:]))


def main(arguments: Iterable[str] | None = None) -> int:
    """Read a run file on stdin; write one picture to stdout, or all that there are into a folder."""
    parser = argparse.ArgumentParser(prog="python -m views.charts.files", description=main.__doc__)
    parser.add_argument("name", choices=(*NAMES, "all"))
    parser.add_argument("form", choices=FORMATS)
    parser.add_argument("--into", type=Path, default=Path(), help=texts.FOLDER_HELP)
    parser.add_argument("--name", dest="stem", default="run", help=texts.NAME_HELP)
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    run = decode(sys.stdin.buffer.read())  # a file from elsewhere has been checked by whoever let it in
    if chosen.name != "all" and chosen.name not in of(run):
        print(texts.NO_CHART.format(kind=run.kind, name=chosen.name, names=", ".join(of(run))), file=sys.stderr)
        return 1
    if chosen.name != "all":
        data = convert(run, chosen.name, chosen.form)
        if data is None:
            print(texts.EMPTY_CHART, file=sys.stderr)
            return 1
        sys.stdout.buffer.write(data)
        return 0
    chosen.into.mkdir(parents=True, exist_ok=True)
    for name in of(run):
        data = convert(run, name, chosen.form)
        if data is not None:
            path = chosen.into / f"{chosen.stem}.{name}.{chosen.form}"
            path.write_bytes(data)
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
