"""The Compare page: the choices of a comparison at the left, its result at the right."""

import functools
import html
from pathlib import Path

import streamlit as st

from measure import runner
from measure.judge import outlook
from measure.model import text
from measure.model.run import Run
from measure.model.run_file import decode
from measure.runner import Snapshot
from views.choices.address import fields
from views.choices.compare import Choices, choose, of_run
from views.pages import frame
from views.result import heading
from views.ui import look
from views.ui.memo import Memo

_EXAMPLE = Path(__file__).parent.with_name("example_run.json")
# Of the last runs of this server, so many say how far processes differ on its machine.
_LATELY = 5
_SPREADS = Memo()
_HOW_TO_READ = (
    "Further left is faster, a shorter bar needs less memory, and rows joined by a bracket cannot be told apart."
)


@functools.cache
def _example() -> Run:
    return decode(_EXAMPLE.read_bytes())


def _needs(chosen: Choices) -> str:
    if chosen.needs is None or chosen.request is None:
        return ""
    count = len(chosen.request.strategies)
    needs = (
        f"{count} strateg{'ies' if count > 1 else 'y'}: needs about **{look.size(chosen.needs.peak_bytes)}** "
        f"and **{look.duration(chosen.needs.seconds)}**"
    )
    if count == 1:
        return needs
    lately = [run for run in runner.shared().finished() if run.kind == "compare"][-_LATELY:]
    spread = _SPREADS.get(tuple(run.id for run in lately), lambda: outlook.spread(lately))
    sharp = outlook.resolution(chosen.needs, chosen.request.budget_s, spread)
    return f"{needs}, and tells the fastest apart where they differ by **{text.percent(sharp)}**"


def _body(snapshot: Snapshot | None, chosen: Choices) -> None:
    # Only now, since loading Altair and pandas takes a moment: the choices are on the page by then.
    from views.result.compare import draw_comparison

    if snapshot is None:
        run = _example()
        heading.title(run)
        _about_example(run)
        draw_comparison(run, 0, finished=True, baseline=chosen.baseline, prefix="example_")
    elif snapshot.state == "finished" or any(m.outcome != "not_run" for m in snapshot.run.measurements):
        finished = snapshot.state == "finished"
        draw_comparison(
            snapshot.run, snapshot.version, finished=finished, baseline=chosen.baseline, imported=snapshot.imported
        )


def _about_example(run: Run) -> None:
    cpu = str(run.environment.get("cpu_model") or run.environment.get("cpu") or "another machine")
    st.html(
        '<div style="opacity:.85"><b>An example, measured before.</b> '
        f"{html.escape(run.request.workload)} on {html.escape(cpu)}, {html.escape(run.created[:10])}. {_HOW_TO_READ} "
        "Choose what you have, and press Run to measure it here.</div>"
    )


frame.draw("compare", fields=fields, choose=choose, of_run=of_run, needs=_needs, body=_body)
