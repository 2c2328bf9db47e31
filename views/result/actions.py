"""The head of a run: its case, where it comes from, and the buttons that share, continue, repeat and export it."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import msgspec
import streamlit as st

from measure import client
from measure.claims.tries import still_tried
from measure.engine.sweep import is_open
from measure.machine import environment
from measure.run.place import StoreError
from measure.run.request import Request, RequestError
from measure.run.request import again as asked_again
from measure.run.run import Run
from measure.run.sweep_request import SweepRequest, of_run
from measure.store.store import Snapshot
from views.result import decision, exports, heading, lookup, progress, reproduction
from views.ui import browser, guard, look, session
from workloads import functions, places

# The run that answered the last request without being measured for it.
_ANSWERED = "answered"
# Label, ending of the address, explanation.
_FILES = (
    ("Report (HTML)", exports.REPORT, "One page that opens anywhere, with charts, code and the run file in it."),
    ("Run file (JSON)", "json", "Everything, without loss; can be imported."),
    ("Table (CSV)", "csv", "One line for each strategy."),
    ("Samples (CSV)", "samples.csv", "Every raw sample."),
    ("Summary (Markdown)", "md", "For a pull request: verdict, table, environment, link."),
    ("Figures (zip)", exports.FIGURES, "Every chart as SVG and as PNG; takes some seconds."),
)


def start(request: Request | SweepRequest, parent: str | None = None, continue_from: str | None = None) -> None:
    """Queue a run and show it, or keep the reason why it cannot be for the page to show. ``parent`` is the run that it
    repeats, ``continue_from`` the sweep that it goes on with."""
    with _asking():
        show(client.shared().submit(request, parent, session.visitor(), continue_from=continue_from))


def queue(request: Request | SweepRequest) -> list[str]:
    """Queue a run, or one on each machine, for the page to show later; their ids."""
    with _asking():
        return client.shared().submit_to_all(request, session.visitor())
    return []


@contextlib.contextmanager
def _asking() -> Iterator[None]:
    try:
        yield
    except RequestError as error:
        st.session_state["refusal"] = str(error)
    else:
        st.session_state["refusal"], st.session_state["notices"] = None, ()


def show(run_id: str, *beside: str) -> None:
    """Show a run that was asked for, and others ``beside`` it; remember whether it was measured before."""
    st.session_state[_ANSWERED] = None
    st.session_state.setdefault(progress.OWN, set()).update((run_id, *beside))
    with contextlib.suppress(StoreError, ValueError):  # the page of the run says what is wrong
        snapshot = client.shared().snapshot(run_id)
        if snapshot is not None and snapshot.state == "finished":
            st.session_state[_ANSWERED] = run_id
    browser.to_run(run_id, *beside)


def again(run_id: str) -> None:
    """Queue a run that repeats this one, and show it."""
    try:
        run = lookup.find(run_id).run
        if run.kind == "claims":
            show(client.shared().submit(still_tried(run), run.id, session.visitor()))
        else:
            start(of_run(run) if run.kind == "sweep" else asked_again(run.request), parent=run.id)
    except RequestError as error:
        st.session_state["notices"] = (f"This cannot be measured here: {error}.",)


def go_on(run_id: str) -> None:
    """Queue a sweep that goes on with this one, within the time budget that the page's field has now, and show it."""
    try:
        run = lookup.find(run_id).run
        budget_s = float(st.session_state.get("budget") or run.request.budget_s)
        asked = of_run(run)
        start(replace(asked, base=msgspec.structs.replace(asked.base, budget_s=budget_s)), continue_from=run_id)
    except RequestError as error:
        st.session_state["notices"] = (f"This cannot be continued here: {error}.",)


def comes_with_code(run: Run) -> bool:
    """True for a run of somebody's own function that nobody has given to this server."""
    return run.request.own is not msgspec.UNSET and functions.get(run.request.workload) is None


def draw(snapshot: Snapshot) -> None:
    """Draw the case, where the run comes from, the buttons, and what it says about the run that it repeats."""
    run, finished = snapshot.run, snapshot.state == "finished"
    answers = finished and st.session_state.get(_ANSWERED) == run.id
    with guard.calm("the head of the run"), st.container(key="about_run", gap="small"):
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            with st.container(gap="xsmall", width="stretch"):
                heading.title(run)
                draw_origin(snapshot)
            with st.container(horizontal=True, width="content", key="actions", gap="small"):
                _buttons(snapshot, "anew" if answers else "again")
        if answers:
            ago = session.since(run.finished)
            st.markdown(f":material/history: **Measured {ago} ago**, with the same request", width="content")
        decision.draw(run)
        if finished and run.parent is not None and run.kind != "claims":
            reproduction.draw(run, snapshot.version)


def _buttons(snapshot: Snapshot, key: str) -> None:
    """Draw the buttons, the one that repeats the run with this ``key``."""
    run = snapshot.run
    browser.share_button(run.id, exports.of_run(run.id, "json"))
    if snapshot.state != "finished":
        return
    if not places.viewer():
        # One that comes from elsewhere is not continued: what it holds cannot be vouched for here.
        if run.kind == "sweep" and is_open(run) and not snapshot.imported:
            st.button(
                "Continue", key="continue", icon=":material/resume:", type="primary", on_click=go_on, args=(run.id,),
                help="Measures the points that are not complete within the time budget under Advanced; those that are "
                "stay as they are.",
            )  # fmt: skip
        if not comes_with_code(run):
            st.button(
                "Measure again here" if key == "again" else "Measure anew", key=key, icon=":material/replay:",
                on_click=again, args=(run.id,),
                help="Measures the same request on this machine, then says whether the verdict was reproduced.",
            )  # fmt: skip
        if session.may(snapshot.owner):
            decision.button(run, snapshot.version)
    if run.kind != "claims":
        st.button(
            "Present", key="present", icon=":material/slideshow:", on_click=st.query_params.update,
            args=({"present": "1"},), help="Shows the result in large, for a screen in a meeting.",
        )  # fmt: skip
    _export(run)  # also of one that came with code: where it cannot be run, it is taken elsewhere


def draw_origin(snapshot: Snapshot) -> None:
    mark = ":violet-badge[:material/upload_file: imported] " if snapshot.imported else ""
    st.caption(f"{mark}{origin(snapshot.run)}")


def origin(run: Run) -> str:
    """Measured 2025-01-15 10:30 (Europe/Berlin) on Intel(R) Xeon(R) Processor, 2 cores, 23.5 GiB, with TensorFlow
    2.21.0. As Markdown."""
    machine, version = environment.machine(run.environment), run.environment.get("tensorflow")
    words = f"{'Measured' if run.finished else 'Asked for'} {session.local(run.created)} ({session.zone()})"
    return look.plain(
        words + (f" on {machine}" if machine else "") + (f", with TensorFlow {version}" if version else "")
    )


def _export(run: Run) -> None:
    # Drawn when it is open: its buttons are not for every rerun.
    with st.popover("Export", icon=":material/download:", key="export", on_change="rerun") as opened:
        if not opened.open:
            return
        page = (st.context.url or "").partition("?")[0]
        for label, ending, about in (file for file in _FILES if exports.offers(run, file[1])):
            query = {"link": f"{page}?run={run.id}"} if page and ending == "md" else {}
            st.link_button(
                label, exports.of_run(run.id, ending, **query), help=about, key=look.key("download", ending),
                width="stretch",
            )  # fmt: skip
