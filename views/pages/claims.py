"""The Claims page: what is said about mapping, and what is true on this machine."""

import functools
from pathlib import Path

import streamlit as st

from measure import client
from measure.claims import known, verdicts
from measure.claims.tries import chosen
from measure.run.encoding import decode
from measure.run.place import StoreError
from measure.run.request import RequestError
from measure.run.run import Run
from measure.store.store import Snapshot
from views.pages import newest, opening
from views.result import actions, claims, heading, progress
from views.result.claims import Tried
from views.ui import guard, look, session
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


def _draw() -> None:
    """Draw the run that the address names, or the newest verdict on every claim; one claim where it names one."""
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
    everything, try_ = known.all_claims(), None if places.viewer() else _try
    st.markdown(
        "**What is said about mapping in TensorFlow.** This server shows verdicts and measures none."
        if try_ is None
        else "**What is said about mapping in TensorFlow, tried on this machine.** A verdict is computed from figures "
        "that were measured here; the evidence of each is one click away."
    )
    if going_on := progress.others():
        st.caption(f":material/hourglass_top: {look.plain(going_on)}")
    try:
        runs = newest.on_each()
    except StoreError as error:
        st.warning(look.plain(f"The store of runs cannot be used: {error}."), icon=":material/database_off:")
        runs = {}
    tried = [claims.judged(claim, runs.get(claim.id) if runs else _example()) for claim in everything]
    if not runs:
        anew = " Try the claims here." if try_ else ""
        st.markdown(f"**An example, measured before.** {actions.origin(_example())}.{anew}")
    if _one(tried, imported=try_ is None and bool(runs)):
        return
    if refusal := claims.button(f"Try all {len(tried)}", everything, "try_all", try_, "primary"):
        st.caption(look.plain(refusal))
    claims.draw_list(tried, try_=try_, open_=_open)


def _run(snapshot: Snapshot) -> None:
    run, finished = snapshot.run, snapshot.state == "finished"
    tried = [claims.judged(claim, run) for claim in known.all_claims() if claim.id in (run.claims or [])]
    if _one(tried, imported=snapshot.imported):
        return
    st.button("All claims", key="claims_all", type="tertiary", icon=":material/arrow_back:", on_click=_leave)
    if not finished:
        progress.watch(snapshot)
    actions.draw(snapshot)
    if finished:
        st.markdown(f"### {look.plain(verdicts.summary(run))}")
        if run.status != "complete":
            st.caption(look.plain(look.sentence(run.stop_reason)))
    heading.draw_doubts(heading.doubts(run))
    if gone := verdicts.gone(run):
        names = look.plain(", ".join(gone))
        st.caption(f":material/info: This run holds claims that are no longer tried: {names}.")
    claims.draw_list(tried, try_=_try if finished and not places.viewer() else None, open_=_open)


def _one(tried: list[Tried], *, imported: bool) -> bool:
    """Draw the claim that the address names; False where it names none of these."""
    item = next((item for item in tried if item.claim.id == st.query_params.get("claim")), None)
    if item is None:
        return False
    with st.container(horizontal=True, gap="small"):
        st.button("Back to the claims", key="claims_back", type="tertiary", icon=":material/arrow_back:",
                  on_click=_open)  # fmt: skip
        label = "Try it here" if item.verdict is None else "Try it again here"
        claims.button(label, [item.claim], "try_this", None if places.viewer() else _try)
    if item.run is not None:
        st.caption(actions.origin(item.run))
    claims.draw_claim(item, imported=imported)
    return True


def _try(ids: tuple[str, ...]) -> None:
    try:
        run_id = client.shared().submit(chosen(ids), None, session.visitor())
    except RequestError as error:
        st.session_state["refusal"] = str(error)
        return
    _open()
    actions.show(run_id)


def _open(claim_id: str | None = None) -> None:
    """Show a claim with its evidence, or all of them again."""
    if claim_id is None:
        st.query_params.pop("claim", None)
    else:
        st.query_params["claim"] = claim_id


def _leave() -> None:
    st.query_params.pop("run", None)
    _open()


with guard.calm("the page"):
    _draw()
