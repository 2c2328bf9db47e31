"""The line below a run: where it comes from, and the buttons that share, continue, repeat and export it."""

import contextlib

import msgspec
import streamlit as st

from measure import client
from measure.claims.tries import still_tried
from measure.engine import continuing
from measure.machine import environment
from measure.run.place import StoreError
from measure.run.request import Request, RequestError
from measure.run.request import again as asked_again
from measure.run.run import Run
from measure.run.sweep_request import SweepRequest, of_run
from measure.store.store import Snapshot
from views.result import exports, heading, lookup, reproduction, sweep_continue
from views.ui import guard, look, session, share, steps, times
from workloads import functions, places

# The run that answered the last request without being measured for it.
_ANSWERED = "answered"


def start(request: Request | SweepRequest, parent: str | None = None, continue_from: str | None = None) -> None:
    """Queue a run and show it, or keep the reason why it cannot be for the page to show. ``parent`` is the run that it
    repeats, ``continue_from`` the sweep that it goes on with."""
    if (run_id := queue(request, parent, continue_from)) is not None:
        show(run_id)


def queue(request: Request | SweepRequest, parent: str | None = None, continue_from: str | None = None) -> str | None:
    """Queue a run as `start` does, for the page to show later; its id."""
    try:
        run_id = client.shared().submit(request, parent, session.visitor(), continue_from=continue_from)
    except RequestError as error:
        st.session_state["refusal"] = str(error)
        return None
    st.session_state["refusal"], st.session_state["notices"] = None, ()
    return run_id


def show(run_id: str) -> None:
    """Show a run that was asked for, and remember whether it is one that was measured before."""
    st.session_state[_ANSWERED] = None
    with contextlib.suppress(StoreError, ValueError):  # the page of the run says what is wrong
        snapshot = client.shared().snapshot(run_id)
        if snapshot is not None and snapshot.state == "finished":
            st.session_state[_ANSWERED] = run_id
    steps.to_run(run_id)


def again(run_id: str) -> None:
    """Queue a run that repeats this one, and show it."""
    try:
        run = lookup.find(run_id)
        if run.kind == "claims":
            show(client.shared().submit(still_tried(run), run.id, session.visitor()))
        else:
            start(of_run(run) if run.kind == "sweep" else asked_again(run.request), parent=run.id)
    except RequestError as error:
        st.session_state["notices"] = (f"This cannot be measured here: {error}.",)


def comes_with_code(run: Run) -> bool:
    """True for a run of somebody's own function that nobody has given to this server."""
    return run.request.own is not msgspec.UNSET and functions.get(run.request.workload) is None


def draw(snapshot: Snapshot) -> None:
    """Draw where a run comes from, the buttons, and what it says about the run that it repeats."""
    run, finished = snapshot.run, snapshot.state == "finished"
    answers = finished and st.session_state.get(_ANSWERED) == run.id
    outlook = ""
    heading.title(run)
    with guard.calm("the buttons"), st.container(key="about_run", gap="small"):
        if answers:
            with st.container(horizontal=True, key="answered", gap="small", vertical_alignment="center"):
                ago = times.since(run.finished)
                st.markdown(f":material/history: **Measured {ago} ago**, with the same request", width="content")
                st.button("Measure anew", key="anew", type="tertiary", icon=":material/replay:", on_click=again,
                          args=(run.id,))  # fmt: skip
        if finished:
            mark = ":violet-badge[:material/upload_file: imported] " if snapshot.imported else ""
            st.caption(f"{mark}{origin(run)}")
        with st.container(horizontal=True, key="actions", gap="small", vertical_alignment="center"):
            share.button(run.id, exports.of_run(run.id, "json"))
            if finished and not places.viewer():
                # One that comes from elsewhere is not continued: what it holds cannot be vouched for here.
                if run.kind == "sweep" and continuing.is_open(run) and not snapshot.imported:
                    outlook = sweep_continue.draw(
                        run, snapshot.version, lambda request, run_id: start(request, continue_from=run_id)
                    )
                if not answers and not comes_with_code(run):
                    st.button(
                        "Measure again here", key="again", icon=":material/replay:", on_click=again, args=(run.id,),
                        help="Measures the same request on this machine, then says whether the verdict was "
                        "reproduced.",
                    )  # fmt: skip
            if finished:  # one that came with code as well: where it cannot be run, it is taken elsewhere
                _export(run)
        if outlook:
            st.caption(f":material/resume: {look.plain(outlook)}")
        if finished and run.parent is not None and run.kind != "claims":
            reproduction.draw(run, snapshot.version)


def origin(run: Run) -> str:
    """Measured 2025-01-15 10:30 (Europe/Berlin) on Intel(R) Xeon(R) Processor, 2 cores, 23.5 GiB, with TensorFlow
    2.21.0. As Markdown."""
    machine, version = environment.machine(run.environment), run.environment.get("tensorflow")
    words = f"Measured {times.local(run.created)} ({times.zone()})"
    return look.plain(
        words + (f" on {machine}" if machine else "") + (f", with TensorFlow {version}" if version else "")
    )


def _export(run: Run) -> None:
    # Drawn when it is open: its buttons are not for every rerun.
    with st.popover("Export", icon=":material/download:", key="export", on_change="rerun") as opened:
        if not opened.open:
            return
        page = (st.context.url or "").partition("?")[0]
        link = {"link": f"{page}?run={run.id}"} if page else {}
        sampling = run.kind != "claims" and exports.is_sampling()
        files: list[tuple[str, str, str, dict[str, str]]] = [
            ("Run file (JSON)", "json", "Everything, without loss; can be imported.", {}),
            ("Table (CSV)", "csv", "One line for each strategy.", {}),
            ("Samples (CSV)", "samples.csv", "Every raw sample.", {}),
            ("Summary (Markdown)", "md", "For a pull request: verdict, table, environment, link.", link),
        ]
        if run.kind != "claims":
            files.append(("Figures (zip)", exports.FIGURES, "Every chart as SVG and as PNG; takes some seconds.", {}))
        for label, ending, about, query in files:
            st.link_button(
                label, exports.of_run(run.id, ending, **query), help=about, key=look.key("download", ending),
                width="stretch", disabled=sampling and ending == exports.FIGURES,
            )  # fmt: skip
        if sampling:
            st.caption("Figures are drawn when the run that is being measured has its samples: open this again then.")
