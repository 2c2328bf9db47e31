"""The Claims page: what is said about mapping, and what is true on this machine."""

import functools
import html
from pathlib import Path

import streamlit as st

from measure import admission, client
from measure.claims import known, verdicts
from measure.claims.tries import chosen, seconds_of
from measure.machine import environment
from measure.run.encoding import decode
from measure.run.place import StoreError
from measure.run.request import RequestError
from measure.run.run import Run
from measure.store.store import Snapshot
from views.pages import newest, opening, texts
from views.result import actions, claims, heading, progress
from views.result.claims import Tried
from views.ui import guard, look, session, times
from workloads import places

_EXAMPLE = Path(__file__).parent.with_name("example_claims.json")
_STYLE = """<style>
[class*=st-key-claim_]:not([class*=st-key-claim_buttons]) {border-top: 1px solid light-dark(#dfe4eb, #2c3849);
padding-top: .55rem}
[class*=st-key-claim_buttons] {padding-left: 11.2rem}
@media (max-width: 640px) {[class*=st-key-claim_buttons] {padding-left: 0}}
</style>"""


@functools.cache
def _example() -> Run:
    return decode(_EXAMPLE.read_bytes())


def draw() -> None:
    """Draw the run that the address names, or the newest verdict on every claim; one claim where it names one."""
    with guard.calm(texts.PAGE):
        run_id = st.query_params.get("run")
        snapshot, problem = opening.find(run_id) if run_id else (None, "")
        if snapshot is not None and snapshot.run.kind != "claims":
            opening.anew()
            st.switch_page(f"views/pages/{snapshot.run.kind}.py", query_params={"run": snapshot.run.id})
        st.html(look.style(()) + _STYLE)
        if refusal := st.session_state.pop("refusal", None):
            st.warning(look.plain(look.sentence(refusal)), icon=":material/block:")
        if problem:
            st.warning(look.plain(problem), icon=":material/link_off:")
        elif snapshot is None:
            _overview()
        else:
            _run(snapshot)


def _overview() -> None:
    """Draw the newest verdicts, and those that come with Mapbench where there are none."""
    st.markdown(texts.VIEWER if places.viewer() else texts.CLAIMS_LEAD)
    if going_on := progress.others():
        st.caption(f":material/hourglass_top: {look.plain(going_on)}")
    try:
        runs = newest.on_each()
    except StoreError as error:
        st.warning(look.plain(texts.STORE_FAILED.format(reason=error)), icon=":material/database_off:")
        runs = {}
    if runs:
        tried = [claims.judged(claim, runs.get(claim.id)) for claim in known.all_claims()]
    else:
        tried = [claims.judged(claim, _example()) for claim in known.all_claims()]
        _about_example(_example())
    if _one(tried, imported=places.viewer() and bool(runs)):
        return
    if not places.viewer():
        refusal = admission.refusal(known.all_claims())
        time = look.duration(seconds_of(known.all_claims()))
        st.button(
            texts.TRY_ALL.format(count=len(tried), time=time), key="try_all", type="primary",
            icon=":material/play_arrow:", on_click=_try, args=((),), disabled=refusal is not None,
        )  # fmt: skip
        if refusal:
            st.caption(look.plain(refusal))
    claims.draw_list(tried, try_=None if places.viewer() else _try, open_=_open)


def _about_example(run: Run) -> None:
    about = texts.CLAIMS_EXAMPLE.format(
        machine=html.escape(environment.machine(run.environment)),
        version=html.escape(str(run.environment.get("tensorflow", ""))),
        date=html.escape(run.created[:10]),
    )
    if not places.viewer():
        about += f" {texts.CLAIMS_EXAMPLE_TRY}"
    st.html(f'<div style="opacity:.85"><b>{texts.EXAMPLE}</b> {about}</div>')


def _run(snapshot: Snapshot) -> None:
    run, finished = snapshot.run, snapshot.state == "finished"
    ids = run.claims or []
    tried = [claims.judged(claim, run) for claim in known.all_claims() if claim.id in ids]
    if _one(tried, imported=snapshot.imported):
        return
    st.button(texts.ALL_CLAIMS, key="claims_all", type="tertiary", icon=":material/arrow_back:", on_click=_leave)
    if not finished:
        progress.watch(snapshot)
    actions.draw(snapshot)
    if finished:
        st.markdown(f"### {look.plain(verdicts.summary(run))}")
        if run.status != "complete":
            st.caption(look.plain(look.sentence(run.stop_reason)))
    heading.draw_doubts(heading.doubts(run))
    if gone := verdicts.gone(run):
        st.caption(texts.GONE_CLAIMS.format(claims=look.plain(", ".join(gone))))
    claims.draw_list(tried, try_=_try if finished and not places.viewer() else None, open_=_open)


def _one(tried: list[Tried], *, imported: bool) -> bool:
    """Draw the claim that the address names; False where it names none of these."""
    item = next((item for item in tried if item.claim.id == st.query_params.get("claim")), None)
    if item is None:
        return False
    with st.container(horizontal=True, gap="small"):
        st.button(texts.BACK_TO_CLAIMS, key="claims_back", type="tertiary", icon=":material/arrow_back:",
                  on_click=_close)  # fmt: skip
        if not places.viewer():
            words = texts.TRY_ONE if item.verdict is None else texts.TRY_ONE_AGAIN
            st.button(words.format(time=look.duration(seconds_of([item.claim]))), key="try_this", type="tertiary",
                      icon=":material/play_arrow:", on_click=_try, args=((item.claim.id,),))  # fmt: skip
    if item.run is not None:
        machine, day = environment.machine(item.run.environment), times.local(item.run.created)
        version = item.run.environment.get("tensorflow")
        with_ = f", {texts.WITH_VERSION.format(version=version)}" if version else ""
        st.caption(look.plain(texts.TRIED_ON.format(machine=machine, version=with_, date=day)))
    claims.draw_claim(item, len(item.run.evidence or []) if item.run else 0, imported=imported)
    return True


def _try(ids: tuple[str, ...]) -> None:
    try:
        run_id = client.shared().submit(chosen(ids), None, session.visitor())
    except RequestError as error:
        st.session_state["refusal"] = str(error)
        return
    _close()
    actions.show(run_id)


def _open(claim_id: str) -> None:
    st.query_params["claim"] = claim_id


def _close() -> None:
    st.query_params.pop("claim", None)


def _leave() -> None:
    _close()
    st.query_params.pop("run", None)


draw()
