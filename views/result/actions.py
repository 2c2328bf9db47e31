"""The line below a run: where it comes from, and the buttons that share, continue, repeat and export it."""

from collections.abc import Callable
from functools import partial

import msgspec
import streamlit as st

from measure import runner
from measure.machine import environment
from measure.model.request import Request, RequestError, parse
from measure.model.run import Run
from measure.model.run_file import encode
from measure.output import export
from measure.runner import Snapshot
from measure.sweep import continuing
from measure.sweep.request import SweepRequest, of_run
from views.result import heading, reproduction, sweep_continue, texts
from views.ui import guard, look, session, share, steps, times
from views.ui.memo import Memo
from workloads import functions

_memo = Memo()


def start(request: Request | SweepRequest, parent: str | None = None, continue_from: str | None = None) -> None:
    """Queue a run and show it, or keep the reason why it cannot be for the page to show. ``parent`` is the run that it
    repeats, ``continue_from`` the sweep that it goes on with."""
    shared = runner.shared()
    try:
        if isinstance(request, SweepRequest):
            run_id = shared.submit_sweep(request, parent=parent, owner=session.owner(), continue_from=continue_from)
        else:
            run_id = shared.submit(request, parent=parent, owner=session.owner())
        steps.to_run(run_id)
        st.session_state["refusal"] = None
        st.session_state["notices"] = ()
    except RequestError as error:
        st.session_state["refusal"] = str(error)


def again(run: Run) -> None:
    """Queue a run that repeats this one, and show it."""
    try:
        if run.kind == "claims":
            run_id = runner.shared().submit_claims(run.claims or [], parent=run.id, owner=session.owner())
            steps.to_run(run_id)
        elif run.kind == "sweep":
            start(of_run(run), parent=run.id)
        else:
            start(parse(msgspec.to_builtins(run.request)), parent=run.id)
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
        if finished:
            st.caption(_origin(run, imported=snapshot.imported))
        with st.container(horizontal=True, key="actions", gap="small", vertical_alignment="center"):
            share.button(run.id)
            # One that comes from elsewhere has no such button: see `continuing.refusal`.
            can_go_on = continuing.is_open(run) and not continuing.refusal(run, imported=snapshot.imported)
            if finished and run.kind == "sweep" and can_go_on:
                outlook = sweep_continue.draw(
                    run, snapshot.version, lambda request, run_id: start(request, continue_from=run_id)
                )
            if finished and not comes_with_code(run):
                st.button(
                    texts.AGAIN, key="again", icon=":material/replay:", on_click=again, args=(run,),
                    help=texts.AGAIN_HELP,
                )  # fmt: skip
                _export(run, snapshot.version)
        if outlook:
            st.caption(f":material/resume: {look.plain(outlook)}")
        if finished and run.parent is not None and run.kind != "claims":
            reproduction.draw(run, snapshot.version)


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
        _download(texts.RUN_FILE, partial(encode, run), "json", run, texts.RUN_FILE_HELP)
        _download(texts.TABLE_FILE, partial(export.table_csv, run), "csv", run, texts.TABLE_FILE_HELP)
        _download(texts.SAMPLES_FILE, partial(export.samples_csv, run), "samples.csv", run, texts.SAMPLES_FILE_HELP)
        _download(
            texts.SUMMARY_FILE, partial(export.markdown, run, f"{link}?run={run.id}" if link else None), "md", run,
            texts.SUMMARY_FILE_HELP,
        )  # fmt: skip
        from views.charts import files  # what draws them is not needed before

        for name, picture in _memo.get((run.id, version, "pictures"), lambda: files.shown(run)).items():
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.markdown(picture.title, width="stretch")
                for form in files.FORMATS:
                    _download(form.upper(), partial(files.render, run, name, form), f"{name}.{form}", run)


def _download(label: str, data: Callable[[], str | bytes], ending: str, run: Run, about: str | None = None) -> None:
    st.download_button(
        label, data, file_name=f"mapbench-{look.key(run.id)}.{ending}", on_click="ignore", help=about,
        key=look.key("download", ending), width="stretch" if about else "content",
    )  # fmt: skip
