"""A run's charts as SVG within a page of somebody else's, such as a notebook, whose light or dark they follow
(`python -m views.charts.inline`). They need no script, so that they are in what a notebook is exported as, too.

Ink has the page's colour, and a mapper a variable of its style sheet, see `look.variables`.
"""

import sys

import msgspec

from measure.model.run import Run
from measure.model.run_file import decode
from measure.output import rows
from views.charts import files, latency, memory, sweep_front, sweep_lines, sweep_map
from views.charts.base import INK
from views.ui import look

_FAINT = "rgba(128, 128, 128, 0.35)"
# Two charts stand side by side in a notebook: with its names and figures, each is about half as wide again.
_SURFACE = files.Surface(
    width=300,
    background="transparent",
    ink=INK,
    colours=look.VARIABLES,
    titled=False,
    config={
        "axis": {
            "labelColor": INK,
            "labelFontSize": 12,
            "titleColor": INK,
            "gridColor": _FAINT,
            "domainColor": _FAINT,
            "tickColor": _FAINT,
        },
        "legend": {
            "labelColor": INK,
            "labelFontSize": 12,
            "symbolBaseFillColor": INK,
            "symbolBaseStrokeColor": INK,
        },
    },
)
# Those that answer what was asked; the page has more. The last is of one point, but where an option is swept.
_SHOWN = ("latency", "memory", "map")
_DIAL = "front"


class Chart(msgspec.Struct, frozen=True):
    """A chart as SVG, with what is said of it: its title, what its marks mean, and what it says to people who do not
    see it."""

    svg: str
    title: str
    about: str
    alt: str


def draw(run: Run, name: str) -> Chart | None:
    """Return one chart; None where the run has nothing to show in it."""
    svg = files.convert(run, name, "svg", _SURFACE)
    if svg is None:
        return None
    about, alt = _said(run, name)
    return Chart(svg.decode(), files.of(run)[name].title, about, alt)


def _said(run: Run, name: str) -> tuple[str, str]:
    """Return what the marks of a chart mean, and what it says."""
    shown = rows.make(run, rows.choose_baseline(run))
    if name == "map":
        return files.of(run)[name].note(run), sweep_map.takeaway(run)
    if name == _DIAL:
        measurements, dials = sweep_front.subject(run)
        return sweep_front.about(dials), sweep_front.takeaway(measurements)
    if run.kind == "sweep":
        return "", sweep_lines.takeaway(run, "latency" if name == "latency" else "memory")
    if name == "latency":
        return latency.caption(shown, run), latency.takeaway(shown)
    return memory.caption(shown), memory.takeaway(shown)


def main() -> None:
    """Read a run file on stdin; write its charts to stdout."""
    run = decode(sys.stdin.buffer.read())
    shown = (*_SHOWN, _DIAL) if sweep_front.by_option(run) else _SHOWN
    charts = [draw(run, name) for name in shown if name in files.of(run)]
    sys.stdout.buffer.write(msgspec.json.encode([chart for chart in charts if chart is not None]))


if __name__ == "__main__":
    main()
