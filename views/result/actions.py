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
from views.result import exports, heading, lookup, reproduction, sweep_continue, texts
from views.ui import guard, look, session, share, steps, times
from views.ui.memo import Memo
from workloads import functions, places

_memo = Memo(__name__)
# The run that answered the last request without being measured for it.
_ANSWERED = "answered"


def start(request: Request | SweepRequest, parent: str | None = None, continue_from: str | None = None) -> None:
    """Queue a run and show it, or keep the reason why it cannot be for the page to show. ``parent`` is the run that it
    repeats, ``continue_from`` the sweep that it goes on with."""
    if (run_id := queue(request, parent, continue_from)) is not None:
        show(run_id)


def queue(request: Request | SweepRequest, parent: str | None = None, continue_from: str | None = None) -> str | None:
    """Queue a run as `start` does, for the page to show later; its id."""
    shared = client.shared()
    try:
        run_id = shared.submit(request, parent, session.visitor(), continue_from=continue_from)
        st.session_state["refusal"] = None
        st.session_state["notices"] = ()
    except RequestError as error:
        st.session_state["refusal"] = str(error)
        return None
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
        elif run.kind == "sweep":
            start(of_run(run), parent=run.id)
        else:
            start(asked_again(run.request), parent=run.id)
    except RequestError as error:
        st.session_state["notices"] = (texts.NOT_MEASURABLE.format(error=error),)


def comes_with_code(run: Run) -> bool:
    """True for a run of somebody's own function that nobody has given to this server."""
    return run.request.own is not msgspec.UNSET and functions.get(run.request.workload) is None


def draw(snapshot: Snapshot) -> None:
    """Draw where a run comes from, the buttons, and what it says about the run that it repeats."""
    run, finished = snapshot.run, snapshot.state == "finished"
    outlook = ""
    heading.title(run)
    with guard.calm(texts.THE_BUTTONS), st.container(key="about_run", gap="small"):
        answers = finished and st.session_state.get(_ANSWERED) == run.id
        if answers:
            _answered(run)
        if finished:
            st.caption(_origin(run, imported=snapshot.imported))
        with st.container(horizontal=True, key="actions", gap="small", vertical_alignment="center"):
            share.button(run.id)
            # One that comes from elsewhere has no such button: what it holds cannot be vouched for here.
            can_go_on = continuing.is_open(run) and not snapshot.imported
            if finished and run.kind == "sweep" and can_go_on and not places.viewer():
                outlook = sweep_continue.draw(
                    run, snapshot.version, lambda request, run_id: start(request, continue_from=run_id)
                )
            if finished and not answers and not comes_with_code(run) and not places.viewer():
                st.button(
                    texts.AGAIN, key="again", icon=":material/replay:", on_click=again, args=(run.id,),
                    help=texts.AGAIN_HELP,
                )  # fmt: skip
            if finished:  # one that came with code as well: where it cannot be run, it is taken elsewhere
                _export(run, snapshot.version)
        if outlook:
            st.caption(f":material/resume: {look.plain(outlook)}")
        if finished and run.parent is not None and run.kind != "claims":
            reproduction.draw(run, snapshot.version)


def _answered(run: Run) -> None:
    """Say that an equal request was measured of late, and offer to measure it all the same."""
    with st.container(horizontal=True, key="answered", gap="small", vertical_alignment="center"):
        st.markdown(f":material/history: {texts.ANSWERED.format(ago=times.since(run.finished))}", width="content")
        st.button(texts.ANEW, key="anew", type="tertiary", icon=":material/replay:", on_click=again, args=(run.id,))


def _origin(run: Run, *, imported: bool) -> str:
    """Measured 2025-01-15 10:30 (Europe/Berlin) on Intel(R) Xeon(R) Processor, 2 cores, 23.5 GiB, with TensorFlow
    2.21.0."""
    words = texts.MEASURED.format(time=times.local(run.created), zone=times.zone())
    machine, version = environment.machine(run.environment), run.environment.get("tensorflow")
    words += texts.ON_MACHINE.format(machine=machine) if machine else ""
    words += texts.WITH_TENSORFLOW.format(version=version) if version else ""
    mark = texts.IMPORTED if imported else ""
    return f"{mark}{look.plain(words)}"


def _export(run: Run, version: int) -> None:
    # Drawn when it is open: ten buttons are not for every rerun.
    with st.popover(texts.EXPORT, icon=":material/download:", key="export", on_change="rerun") as opened:
        if not opened.open:
            return
        link = (st.context.url or "").partition("?")[0]
        _download(texts.RUN_FILE, run, "json", texts.RUN_FILE_HELP)
        _download(texts.TABLE_FILE, run, "csv", texts.TABLE_FILE_HELP)
        _download(texts.SAMPLES_FILE, run, "samples.csv", texts.SAMPLES_FILE_HELP)
        linked = {"link": f"{link}?run={run.id}"} if link else {}
        _download(texts.SUMMARY_FILE, run, "md", texts.SUMMARY_FILE_HELP, **linked)
        from views.charts import files  # what draws them is not needed before

        sampling = exports.is_sampling()
        if sampling:
            st.caption(texts.DRAWN_LATER)
        for name, title in _memo.get((run.id, version, "pictures"), lambda: files.titles(run)).items():
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.markdown(title, width="stretch")
                for form in files.FORMATS:
                    st.link_button(
                        form.upper(), exports.of_run(run.id, f"{name}.{form}"), disabled=sampling,
                        key=look.key("download", f"{name}.{form}"),
                    )  # fmt: skip


def _download(label: str, run: Run, ending: str, about: str, **query: str) -> None:
    address = exports.of_run(run.id, ending, **query)
    st.link_button(label, address, help=about, key=look.key("download", ending), width="stretch")
