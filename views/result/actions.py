"""What can be done with a run that is shown: share it, measure it again, export it; and where it comes from."""

from collections.abc import Callable
from functools import partial

import msgspec
import streamlit as st

from measure import runner
from measure.judge import reproduction
from measure.judge.reproduction import Compared, Reproduction
from measure.machine import environment
from measure.model import request as requests
from measure.model.place import StoreError
from measure.model.request import Request, RequestError
from measure.model.run import Run, encode
from measure.output import export
from measure.runner import Snapshot
from measure.sweep import continuing
from measure.sweep import reproduction as sweep_reproduction
from measure.sweep import request as sweep_request
from measure.sweep.reproduction import SweepReproduction
from measure.sweep.request import SweepRequest
from views.result import sweep_continue
from views.ui import guard, look, session, share
from views.ui.memo import Memo

_memo = Memo()
_SIGNS = {"reproduced": ":material/check_circle:", "refuted": ":material/error:", "undecided": ":material/help:"}


def start(request: Request | SweepRequest, parent: str | None = None, continue_from: str | None = None) -> None:
    """Queue a run and show it; or say why it cannot be. ``parent``: the run that it repeats; ``continue_from``: the
    sweep that it goes on with."""
    shared = runner.shared()
    try:
        if isinstance(request, SweepRequest):
            run_id = shared.submit_sweep(request, parent=parent, owner=session.owner(), continue_from=continue_from)
        else:
            run_id = shared.submit(request, parent=parent, owner=session.owner())
        st.query_params["run"] = run_id
        st.session_state["refusal"] = None
        st.session_state["notices"] = ()
    except RequestError as error:
        st.session_state["refusal"] = str(error)


def _again(run: Run) -> None:
    try:
        if run.kind == "sweep":
            start(sweep_request.of_run(run), parent=run.id)
        else:
            start(requests.parse(msgspec.to_builtins(run.request)), parent=run.id)
    except RequestError as error:
        st.session_state["notices"] = (f"This cannot be measured here: {error}.",)


def draw(snapshot: Snapshot) -> None:
    """Where a run comes from, the buttons, and what it says about the run that it repeats."""
    run, finished = snapshot.run, snapshot.state == "finished"
    outlook = ""
    with guard.calm("the buttons"), st.container(key="about_run", gap="small"):
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
            if finished:
                st.button(
                    "Measure again here", key="again", icon=":material/replay:", on_click=_again, args=(run,),
                    help="The same request on this machine; then says whether the verdict was reproduced.",
                )  # fmt: skip
                _export(run, snapshot.version)
        if outlook:
            st.caption(f":material/resume: {look.plain(outlook)}")
        if finished and run.parent is not None:
            _beside_parent(run, snapshot.version)


def _origin(run: Run, *, imported: bool) -> str:
    """Measured 2025-01-15 09:30 UTC on Intel(R) Xeon(R) Processor, 2 cores, 23.5 GiB, with TensorFlow 2.21.0."""
    words = f"Measured {run.created[:16].replace('T', ' ')} UTC"
    machine, version = environment.machine(run.environment), run.environment.get("tensorflow")
    words += f" on {machine}" if machine else ""
    words += f", with TensorFlow {version}" if version else ""
    mark = ":violet-badge[:material/upload_file: imported] " if imported else ""
    return f"{mark}{look.plain(words)}"


def _export(run: Run, version: int) -> None:
    # Drawn when it is open: ten buttons are not for every rerun.
    with st.popover("Export", icon=":material/download:", key="export", on_change="rerun") as opened:
        if not opened.open:
            return
        link = (st.context.url or "").partition("?")[0]
        _download("Run file (JSON)", partial(encode, run), "json", run, "Everything, without loss; can be imported.")
        _download("Table (CSV)", partial(export.table_csv, run), "csv", run, "One line for each strategy.")
        _download("Samples (CSV)", partial(export.samples_csv, run), "samples.csv", run, "Every raw sample.")
        _download(
            "Summary (Markdown)", partial(export.markdown, run, f"{link}?run={run.id}" if link else None), "md", run,
            "For a pull request: verdict, table, environment, link.",
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


# --- was it reproduced? ----------------------------------------------------------------------------------------------


def _show(run_id: str) -> None:
    st.query_params["run"] = run_id


def _beside_parent(run: Run, version: int) -> None:
    """What a run says about the one that it repeats; or that it continues one."""
    assert run.parent is not None
    try:
        first = runner.shared().snapshot(run.parent)
    except (ValueError, StoreError):
        first = None
    if first is None or first.state != "finished":
        does = "repeats or continues" if run.kind == "sweep" else "repeats"
        st.caption(f":material/replay: It {does} a run that is not known here.")
        return
    key = (run.id, version, run.parent, first.version)
    if run.kind == "sweep" and _memo.get((*key, "continues"), lambda: sweep_reproduction.continues(run, first.run)):
        with st.container(horizontal=True, key="continues", vertical_alignment="center", gap="small"):
            st.caption(":material/resume: It continues an earlier sweep, with all that one measured.", width="content")
            st.button("Show the first run", key="parent", type="tertiary", on_click=_show, args=(run.parent,))
        return
    with st.container(border=True, key="reproduction", gap="small"):
        if run.kind == "sweep":
            _sweep_reproduction(_memo.get(key, lambda: sweep_reproduction.compare(first.run, run)))
        else:
            _reproduction(_memo.get(key, lambda: reproduction.compare(first.run, run)))
        st.button("Show the first run", key="parent", type="tertiary", on_click=_show, args=(run.parent,))


def _answer(outcome: str, sentence: str) -> None:
    st.markdown(f"{_SIGNS.get(outcome, ':material/replay:')} {look.plain(sentence)}")


def _sweep_reproduction(found: SweepReproduction) -> None:
    _answer(found.outcome, found.sentence)
    if found.crossings:
        st.caption("\n".join(f"- {look.plain(each)}." for each in found.crossings))
    if found.points:
        with st.expander("Then and now", type="compact", key="then_and_now"):
            st.dataframe(
                [
                    {
                        **{name: f"{value:,}" for name, value in each.at.items()},
                        "outcome": each.found.outcome,
                        "ranks that changed": _moves(each.found) or "none",
                    }
                    for each in found.points
                ],
                hide_index=True, key="reproduction_table", row_height=30,
                alt="For each point, whether its leaders lead again, and which ranks have changed",
            )  # fmt: skip


def _reproduction(found: Reproduction) -> None:
    _answer(found.outcome, found.sentence)
    if found.strategies:
        st.caption(
            look.plain(f"Ranks that changed: {moves}." if (moves := _moves(found)) else "All ranks are the same.")
        )
        with st.expander("Then and now", type="compact", key="then_and_now"):
            st.dataframe(
                [_row(strategy, found) for strategy in found.strategies], hide_index=True, key="reproduction_table",
                alt="Each strategy's rank in both runs, and how its latency has changed relative to the others",
            )  # fmt: skip


def _moves(found: Reproduction) -> str:
    """The ranks that have changed, each within or beyond chance."""
    return ", ".join(
        f"{moved.slug} {moved.rank_before} → {moved.rank_now} ({'beyond' if moved.changed else 'within'} chance)"
        for moved in found.moved
    )


def _row(strategy: Compared, found: Reproduction) -> dict[str, str]:
    change = strategy.change
    return {
        "strategy": strategy.slug,
        "rank then": str(strategy.rank_before),
        "rank now": str(strategy.rank_now),
        f"latency over that of {found.reference}, now against then": look.MISSING
        if change is None
        else " ".join(look.factor_with_interval(change.ratio, change.low, change.high)),
        "beyond chance": "yes" if strategy.changed else "no",
    }
