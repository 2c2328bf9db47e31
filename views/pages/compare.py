"""The Compare page: the choices of a comparison at the left, its result at the right."""

import functools
import html
from pathlib import Path

import streamlit as st

from measure.run.encoding import decode
from measure.run.run import Run
from measure.store.store import Snapshot
from views.choices.address import fields
from views.choices.compare import Choices, choose, of_run, unasked
from views.pages import frame, texts
from views.result import heading
from views.ui import look
from workloads import places

_EXAMPLE = Path(__file__).parent.with_name("example_run.json")


@functools.cache
def _example() -> Run:
    return decode(_EXAMPLE.read_bytes())


def _needs(chosen: Choices) -> str:
    if chosen.needs is None or chosen.request is None:
        return ""
    count = len(chosen.request.strategies)
    return texts.NEEDS.format(
        asked=texts.STRATEGIES.format(count=count) if count > 1 else texts.ONE_STRATEGY,
        memory=look.size(chosen.needs.peak_bytes),
        time=look.duration(chosen.needs.seconds),
    )


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
    cpu = str(run.environment.get("cpu_model") or run.environment.get("cpu") or texts.EXAMPLE_CPU)
    about = texts.EXAMPLE_ABOUT.format(
        workload=html.escape(run.request.workload), cpu=html.escape(cpu), date=html.escape(run.created[:10])
    )
    if not places.viewer():
        about += f" {texts.EXAMPLE_TRY}"
    st.html(f'<div style="opacity:.85"><b>{texts.EXAMPLE}</b> {about}</div>')


frame.draw(
    "compare", fields=fields, choose=unasked if places.viewer() else choose, of_run=of_run, needs=_needs, body=_body
)  # fmt: skip
