"""The Claims page: what is said about mapping, and what is true on this machine."""

import functools
from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from measure import client
from measure.claims import known, verdicts
from measure.claims.spec import Claim
from measure.claims.tries import chosen
from measure.run.encoding import decode
from measure.run.place import StoreError
from measure.run.request import RequestError
from measure.run.run import Run
from measure.store.store import Snapshot
from views.pages import opening
from views.result import actions, claims, heading, progress
from views.ui import guard, look, session
from workloads import places


@functools.cache
def _example() -> Run:
    return decode(Path(__file__).parent.with_name("example_claims.json").read_bytes())


def _draw() -> None:
    """Draw the run that the address names, or the newest verdict on every claim."""
    run_id = st.query_params.get("run")
    snapshot, problem = opening.find(run_id) if run_id else (None, "")
    if snapshot is not None and snapshot.run.kind != "claims":
        opening.anew()
        st.switch_page(f"views/pages/{snapshot.run.kind}.py", query_params={"run": snapshot.run.id})
    st.html(look.style(()))
    if refusal := st.session_state.pop("refusal", None):
        st.warning(look.plain(look.sentence(refusal)), icon=":material/block:")
    if problem:
        st.warning(look.plain(problem), icon=":material/link_off:")
        _way_back()
    elif snapshot is None:
        _overview(known.all_claims())
    else:
        _run(snapshot)


def _overview(everything: Sequence[Claim]) -> None:
    """Draw the newest verdict on each claim, and that which comes with Mapbench where there is none."""
    try_ = None if places.viewer() else _try
    st.markdown(
        "**What is said about mapping in TensorFlow, and whether it is so.** A verdict is computed from figures that "
        "were measured; the evidence of each is one click away."
        if try_
        else "**What is said about mapping in TensorFlow.** This server shows verdicts and measures none."
    )
    if going_on := progress.others():
        st.caption(f":material/hourglass_top: {look.plain(going_on)}")
    runs = {}
    try:
        runs = claims.newest()
    except StoreError as error:
        st.warning(look.plain(f"The store of runs cannot be used: {error}."), icon=":material/database_off:")
    example = _example()  # which had no GPU, and says nothing of this machine's
    tried = [
        claims.judged(claim, runs[claim.id], claims.HERE if try_ else "")
        if claim.id in runs
        else claims.judged(claim, None if claim.needs_gpu else example, claims.EXAMPLE)
        for claim in everything
    ]
    if _one(tried, imported=places.viewer()):
        return
    if any(item.where == claims.EXAMPLE for item in tried):
        st.markdown(f"**{claims.EXAMPLE}** a verdict that comes with Mapbench. {actions.origin(example)}.")
    claims.button("Try all {}", tried, "try_all", try_)
    claims.draw_list(tried, try_=try_, open_=_open)


def _run(snapshot: Snapshot) -> None:
    run, finished = snapshot.run, snapshot.state == "finished"
    tried = [claims.judged(claim, run) for claim in known.all_claims() if claim.id in (run.claims or [])]
    if _one(tried, imported=snapshot.imported):
        return
    _way_back()
    if not finished:
        progress.watch(snapshot)
    actions.draw(snapshot)
    if finished:
        st.markdown(f"### {look.plain(verdicts.summary(run))}")
        if run.status != "complete":
            st.caption(look.plain(look.sentence(run.stop_reason)))
    heading.draw_doubts(heading.doubts(run))
    if gone := verdicts.gone(run):
        st.caption(f":material/info: No longer tried, and not shown: {look.plain(', '.join(gone))}.")
    claims.draw_list(tried, try_=_try if finished and not places.viewer() else None, open_=_open)


def _way_back() -> None:
    st.button("All claims", key="claims_all", type="tertiary", icon=":material/arrow_back:", on_click=_leave)


def _one(tried: Sequence[claims.Tried], *, imported: bool) -> bool:
    """Draw the claim that the address names; False where it names none of these."""
    item = next((item for item in tried if item.claim.id == st.query_params.get("claim")), None)
    if item is None:
        return False
    with st.container(horizontal=True, gap="small"):
        st.button("Back to the claims", key="claims_back", type="tertiary", icon=":material/arrow_back:",
                  on_click=_open)  # fmt: skip
        again = "again " if item.verdict else ""
        claims.button(f"Try it {again}here", [item], "try_this", None if places.viewer() else _try)
    if item.run is not None:
        st.caption(f"{item.where} {actions.origin(item.run)}")
    claims.draw_claim(item, imported=imported and item.where != claims.EXAMPLE)
    return True


# --- what buttons do -------------------------------------------------------------------------------------------------


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
    st.query_params.pop("claim", None)
    if claim_id is not None:
        st.query_params["claim"] = claim_id


def _leave() -> None:
    st.query_params.pop("run", None)
    _open()


with guard.calm("the page"):
    _draw()
