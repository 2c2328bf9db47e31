"""The Claims page: what is said about mapping, and what is true on this machine."""

import functools
import html
from pathlib import Path

import pandas as pd
import streamlit as st

import strategies
import workloads
from measure import runner
from measure.claims import known
from measure.claims.tries import WORKLOAD, summary
from measure.machine import environment
from measure.model.place import StoreError
from measure.model.request import RequestError
from measure.model.run import Run
from measure.model.run_file import decode
from measure.runner import Snapshot
from measure.store.entries import Entry, Query
from views.pages import opening, texts
from views.result import actions, claims, progress
from views.result.claims import Tried
from views.ui import guard, look, session, steps, times
from views.ui.memo import Memo

_EXAMPLE = Path(__file__).parent.with_name("example_claims.json")
# Runs of claims that are looked through for the newest verdict on each claim, and offered to be compared with.
_MOST_RUNS = 30
# What explains a change, in the order of the environment.
_TELLING = ("tensorflow", "numpy", "keras", "python", "cpu_model", "cores_machine", "gpus")
_PLACES = {fact.key: place for place, fact in enumerate(environment.FACTS)}
_memo = Memo(2_000)


@functools.cache
def _example() -> Run:
    return decode(_EXAMPLE.read_bytes())


def draw() -> None:
    """Draw the run that the address names, or the newest verdict on every claim; one claim where it names one."""
    with workloads.held(), strategies.held(), guard.calm(texts.PAGE):
        run_id = st.query_params.get("run")
        snapshot, problem = opening.find(run_id) if run_id else (None, "")
        if snapshot is not None and snapshot.run.kind != "claims":
            opening.anew()
            st.switch_page(f"views/pages/{snapshot.run.kind}.py", query_params={"run": snapshot.run.id})
        st.html(_STYLE)
        for name, message in known.broken().items():
            st.warning(look.plain(f"{name}: {message}"), icon=":material/broken_image:")
        if refusal := st.session_state.pop("refusal", None):
            st.warning(look.plain(refusal), icon=":material/block:")
        if problem:
            st.warning(look.plain(problem), icon=":material/link_off:")
        elif snapshot is None:
            _overview()
        else:
            _run(snapshot)


_STYLE = """<style>
[class*=st-key-claim_]:not([class*=st-key-claim_buttons]) {border-top: 1px solid light-dark(#dfe4eb, #2c3849);
padding-top: .55rem}
[class*=st-key-claim_buttons] {margin-left: 11.2rem}
@media (max-width: 640px) {[class*=st-key-claim_buttons] {margin-left: 0}}
</style>"""


# --- the newest verdicts ---------------------------------------------------------------------------------------------


def _overview() -> None:
    kept = _kept()
    runs = [run for entry in kept if not entry.imported and (run := _load(entry.id)) is not None]
    st.markdown(texts.CLAIMS_LEAD)
    if going_on := progress.others():
        st.caption(f":material/hourglass_top: {look.plain(going_on)}")
    example = not runs
    if example:
        runs = [_example()]
        _about_example(runs[0])
    everything = known.all_claims()
    newest = {claim.id: next((run for run in runs if claim.id in (run.claims or [])), None) for claim in everything}
    tried = [_judged(claim.id, newest[claim.id]) for claim in everything]
    if _one(tried, imported=False):
        return
    with st.container(horizontal=True, gap="small", key="claims_try"):
        untried = tuple(item.claim.id for item in tried if example or item.verdict is None)
        _try_button(texts.TRY_ALL, "try_all", tuple(item.claim.id for item in tried), primary=True)
        if 0 < len(untried) < len(tried):
            _try_button(texts.TRY_REST, "try_rest", untried, primary=False)
    claims.draw_list(tried, try_=_try, open_=_open)
    if not example:
        _changes(tried, runs[0], kept)


def _try_button(words: str, key: str, ids: tuple[str, ...], *, primary: bool) -> None:
    time = look.duration(claims.seconds_of([claim for claim in known.all_claims() if claim.id in ids]))
    st.button(
        words.format(count=len(ids), time=time), key=key, type="primary" if primary else "secondary",
        icon=":material/play_arrow:", on_click=_try, args=(ids,),
    )  # fmt: skip


def _about_example(run: Run) -> None:
    about = texts.CLAIMS_EXAMPLE.format(
        machine=html.escape(environment.machine(run.environment)),
        version=html.escape(str(run.environment.get("tensorflow", ""))),
        date=html.escape(run.created[:10]),
    )
    st.html(f'<div style="opacity:.85"><b>{texts.EXAMPLE}</b> {about}</div>')


def _kept() -> list[Entry]:
    try:
        return runner.shared().store.entries(Query("", WORKLOAD), 0, _MOST_RUNS)
    except StoreError as error:
        st.warning(look.plain(texts.STORE_FAILED.format(reason=error)), icon=":material/database_off:")
        return []


def _load(run_id: str) -> Run | None:
    snapshot, _ = opening.find(run_id)
    return snapshot.run if snapshot is not None and snapshot.run.evidence else None


# --- a run -----------------------------------------------------------------------------------------------------------


def _run(snapshot: Snapshot) -> None:
    run = snapshot.run
    ids = run.claims or []
    tried = [_judged(claim.id, run) for claim in known.all_claims() if claim.id in ids]
    if _one(tried, imported=snapshot.imported):
        return
    st.button(texts.ALL_CLAIMS, key="claims_all", type="tertiary", icon=":material/arrow_back:", on_click=_leave)
    if snapshot.state != "finished":
        progress.watch(snapshot)
    actions.draw(snapshot)
    if snapshot.state == "finished":
        st.markdown(f"### {look.plain(summary(run))}")
        if run.status != "complete":
            st.caption(look.plain(look.sentence(run.stop_reason)))
    if strange := [claim_id for claim_id in ids if known.get(claim_id) is None]:
        st.caption(texts.STRANGE_CLAIMS.format(claims=look.plain(", ".join(strange))))
    claims.draw_list(tried, try_=_try if snapshot.state == "finished" else None, open_=_open)
    if snapshot.state == "finished":
        _changes(tried, run, _kept())


def _judged(claim_id: str, run: Run | None) -> Tried:
    claim = known.get(claim_id)
    assert claim is not None
    if run is None:
        return Tried(claim)
    key = (run.id, len(run.evidence or []), run.finished, claim_id)
    return _memo.get(key, lambda: claims.judged(claim, run))


def _try(ids: tuple[str, ...]) -> None:
    try:
        run_id = runner.shared().submit_claims(ids, owner=session.owner())
    except RequestError as error:
        st.session_state["refusal"] = str(error)
        return
    _close()
    steps.to_run(run_id)


def _leave() -> None:
    _close()
    if "run" in st.query_params:
        del st.query_params["run"]


# --- one claim -------------------------------------------------------------------------------------------------------


def _open(claim_id: str) -> None:
    st.query_params["claim"] = claim_id


def _close() -> None:
    if "claim" in st.query_params:
        del st.query_params["claim"]


def _one(tried: list[Tried], *, imported: bool) -> bool:
    """Draw the claim that the address names; False where it names none of these."""
    item = next((item for item in tried if item.claim.id == st.query_params.get("claim")), None)
    if item is None:
        return False
    with st.container(horizontal=True, gap="small"):
        st.button(texts.BACK_TO_CLAIMS, key="claims_back", type="tertiary", icon=":material/arrow_back:",
                  on_click=_close)  # fmt: skip
        time = look.duration(claims.seconds_of([item.claim]))
        words = texts.TRY_ONE if item.verdict is None else texts.TRY_ONE_AGAIN
        st.button(words.format(time=time), key="try_this", type="tertiary", icon=":material/play_arrow:",
                  on_click=_try, args=((item.claim.id,),))  # fmt: skip
    if item.run is not None:
        machine, day = environment.machine(item.run.environment), times.local(item.run.created)
        st.caption(look.plain(texts.TRIED_ON.format(machine=machine, date=day)))
    version = len(item.run.evidence or []) if item.run else 0
    claims.draw_claim(item, version, imported=imported)
    return True


# --- what changed ----------------------------------------------------------------------------------------------------


def _changes(tried: list[Tried], run: Run, kept: list[Entry]) -> None:
    """Draw a table of the verdicts that differ from those of another run, where there is one."""
    others = [entry for entry in kept if entry.id != run.id and entry.status != "running"]
    if not others:
        return
    names = {
        entry.id: f"{times.local(entry.created)} · {entry.machine}" + (texts.IMPORTED_TOO if entry.imported else "")
        for entry in others
    }
    st.subheader(texts.CHANGES, anchor=False)
    chosen = st.selectbox(
        texts.CHANGED_AGAINST, list(names), index=None, key="claims_against", placeholder=texts.CHANGED_CHOOSE,
        format_func=lambda run_id: names[run_id],
    )  # fmt: skip
    before = _load(chosen) if chosen else None
    if before is None:
        return
    if told := _differences(before, run):
        st.caption(look.plain("; ".join(told)))
    rows = [
        {
            texts.CLAIM_COLUMN: item.claim.sentence.replace("`", ""),
            texts.THEN_COLUMN: then.word,
            texts.NOW_COLUMN: item.word,
            texts.SEEN_COLUMN: item.verdict.sentence if item.verdict else "",
        }
        for item in tried
        for then in [_judged(item.claim.id, before)]
        if then.word and item.word and then.word != item.word
    ]
    if rows:
        st.dataframe(pd.DataFrame(rows), hide_index=True, key="claims_changed", alt=texts.CHANGES)
    else:
        st.caption(texts.NOTHING_CHANGED)


def _differences(before: Run, run: Run) -> list[str]:
    """The facts of two machines that differ and may explain other verdicts, as words."""
    told = []
    for key in _TELLING:
        (name, was), (_, now) = (
            environment.describe({key: each.environment.get(key)})[_PLACES[key]] for each in (before, run)
        )
        if was != now:
            told.append(texts.CHANGED_FACT.format(name=name, before=was, now=now))
    return told


draw()
