"""The Claims page: what is said about mapping, and what is true on this machine."""

import functools
import html
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

import strategies
import workloads
from measure import beginning, runner
from measure.claims import known
from measure.claims.tries import seconds_of, summary
from measure.machine import environment
from measure.model.place import StoreError
from measure.model.request import RequestError
from measure.model.run import Run
from measure.model.run_file import decode
from measure.runner import Snapshot
from measure.store.entries import RUNNING
from views.pages import newest, opening, texts
from views.result import actions, claims, heading, progress
from views.result.claims import Tried
from views.ui import guard, look, session, times
from views.ui.memo import Memo
from workloads import places

_EXAMPLE = Path(__file__).parent.with_name("example_claims.json")
# Runs of claims that are offered to be compared with.
_MOST_OFFERED = 200
# What makes another machine of it, whatever part of it a run was granted.
_OF_MACHINE = ("cpu_model", "architecture", "cores_machine", "gpus")
# What explains a change, in the order of the environment.
_TELLING = ("tensorflow", "numpy", "keras", "python", "cpu_model", "cores_machine", "gpus")
_PLACES = {fact.key: place for place, fact in enumerate(environment.FACTS)}
# Among runs to compare with: it has no entry.
_BUILT_IN = "example"
_memo = Memo(__name__)


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
        st.html(look.style(()) + _STYLE)
        for name, message in known.broken().items():
            st.warning(look.plain(f"{name}: {message}"), icon=":material/broken_image:")
        if refusal := st.session_state.pop("refusal", None):
            st.warning(look.plain(look.sentence(refusal)), icon=":material/block:")
        if problem:
            st.warning(look.plain(problem), icon=":material/link_off:")
        elif snapshot is None:
            _overview()
        else:
            _run(snapshot)


_STYLE = """<style>
[class*=st-key-claim_]:not([class*=st-key-claim_buttons]) {border-top: 1px solid light-dark(#dfe4eb, #2c3849);
padding-top: .55rem}
[class*=st-key-claim_buttons] {padding-left: 11.2rem}
@media (max-width: 640px) {[class*=st-key-claim_buttons] {padding-left: 0}}
</style>"""


# --- the newest verdicts ---------------------------------------------------------------------------------------------


def _overview() -> None:
    everything = known.all_claims()
    runs = _newest()
    st.markdown(texts.VIEWER if places.viewer() else texts.CLAIMS_LEAD)
    if going_on := progress.others():
        st.caption(f":material/hourglass_top: {look.plain(going_on)}")
    example = not runs
    if example:
        _about_example(_example())
        tried = [claims.judged(claim, _example()) for claim in everything]
    else:
        now = _facts_now()
        tried = [_marked(claims.judged(claim, runs.get(claim.id)), now) for claim in everything]
    if _one(tried, imported=places.viewer() and not example):
        return
    if places.viewer():
        claims.draw_list(tried, try_=None, open_=_open)
    else:
        _tryable(tried, example=example)
    if not example:
        _changes(tried)


def _newest() -> dict[str, Run]:
    try:
        return newest.on_each(known.all_claims())
    except StoreError as error:
        st.warning(look.plain(texts.STORE_FAILED.format(reason=error)), icon=":material/database_off:")
        return {}


def _facts_now() -> Mapping[str, Any]:
    """The facts of this machine and its TensorFlow, as far as they are known; none on a server that never measures."""
    if places.viewer():
        return {}
    details = runner.shared().host().details
    return _memo.get(repr(details), lambda: environment.collect(start_method="", tensorflow=details))


def _marked(item: Tried, now: Mapping[str, Any]) -> Tried:
    """A verdict that says so where its figures come from another machine or TensorFlow than there are now."""
    if item.run is None:
        return item
    then, how = item.run.environment, []
    if any(_differ(then.get(key), now.get(key)) for key in _OF_MACHINE):
        how.append(texts.ON_ANOTHER)
    if _differ(then.get("tensorflow"), now.get("tensorflow")):
        how.append(texts.WITH_VERSION.format(version=then["tensorflow"]))
    if not how:
        return item
    return replace(item, mark=texts.TRIED_APART.format(how=", ".join(how), date=times.local(item.run.created)[:10]))


def _differ(then: object, now: object) -> bool:
    """True if both are known, and are not the same."""
    return then is not None and now is not None and then != now


def _tryable(tried: list[Tried], *, example: bool) -> None:
    """Draw the claims with the buttons that try them."""
    with st.container(horizontal=True, gap="small", key="claims_try"):
        untried = tuple(item.claim.id for item in tried if example or item.verdict is None)
        _try_button(texts.TRY_ALL, "try_all", tuple(item.claim.id for item in tried), primary=True)
        if 0 < len(untried) < len(tried):
            _try_button(texts.TRY_REST, "try_rest", untried, primary=False)
    if refusal := beginning.claims_refusal([item.claim for item in tried]):
        st.caption(look.plain(refusal))
    claims.draw_list(tried, try_=_try, open_=_open)


def _try_button(words: str, key: str, ids: tuple[str, ...], *, primary: bool) -> None:
    asked = [claim for claim in known.all_claims() if claim.id in ids]
    st.button(
        words.format(count=len(ids), time=look.duration(seconds_of(asked))), key=key,
        type="primary" if primary else "secondary", icon=":material/play_arrow:", on_click=_try, args=(ids,),
        disabled=beginning.claims_refusal(asked) is not None,
    )  # fmt: skip


def _about_example(run: Run) -> None:
    about = texts.CLAIMS_EXAMPLE.format(
        machine=html.escape(environment.machine(run.environment)),
        version=html.escape(str(run.environment.get("tensorflow", ""))),
        date=html.escape(run.created[:10]),
    )
    if not places.viewer():
        about += f" {texts.CLAIMS_EXAMPLE_TRY}"
    st.html(f'<div style="opacity:.85"><b>{texts.EXAMPLE}</b> {about}</div>')


# --- a run -----------------------------------------------------------------------------------------------------------


def _run(snapshot: Snapshot) -> None:
    run = snapshot.run
    ids = run.claims or []
    tried = [claims.judged(claim, run) for claim in known.all_claims() if claim.id in ids]
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
    heading.draw_doubts(heading.doubts(run))
    if strange := [claim_id for claim_id in ids if known.get(claim_id) is None]:
        st.caption(texts.STRANGE_CLAIMS.format(claims=look.plain(", ".join(strange))))
    can_try = snapshot.state == "finished" and not places.viewer()
    claims.draw_list(tried, try_=_try if can_try else None, open_=_open)
    if snapshot.state == "finished":
        _changes(tried)


def _try(ids: tuple[str, ...]) -> None:
    try:
        run_id = runner.shared().submit_claims(ids, None, session.visitor())
    except RequestError as error:
        st.session_state["refusal"] = str(error)
        return
    _close()
    actions.show(run_id)


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
        if not places.viewer():
            time = look.duration(seconds_of([item.claim]))
            words = texts.TRY_ONE if item.verdict is None else texts.TRY_ONE_AGAIN
            st.button(words.format(time=time), key="try_this", type="tertiary", icon=":material/play_arrow:",
                      on_click=_try, args=((item.claim.id,),))  # fmt: skip
    if item.run is not None:
        machine, day = environment.machine(item.run.environment), times.local(item.run.created)
        version = item.run.environment.get("tensorflow")
        with_ = f", {texts.WITH_VERSION.format(version=version)}" if version else ""
        st.caption(look.plain(texts.TRIED_ON.format(machine=machine, version=with_, date=day)))
    claims.draw_claim(item, len(item.run.evidence or []) if item.run else 0, imported=imported)
    return True


# --- what changed ----------------------------------------------------------------------------------------------------


def _changes(tried: Sequence[Tried]) -> None:
    """Draw a table of the verdicts that differ from those of another run."""
    shown = {item.run.id for item in tried if item.run is not None}
    if not shown:
        return
    offered = _offered(shown)
    st.subheader(texts.CHANGES, anchor=False)
    chosen = st.selectbox(
        texts.CHANGED_AGAINST, list(offered), index=None, key="claims_against", placeholder=texts.CHANGED_CHOOSE,
        format_func=lambda run_id: offered[run_id],
    )  # fmt: skip
    before = _example() if chosen == _BUILT_IN else newest.load(chosen) if chosen else None
    if before is not None:
        _changed(tried, before)


def _offered(shown: set[str]) -> dict[str, str]:
    """The runs that verdicts can be compared with, by their ids, and the example: in words."""
    try:
        kept = [entry for entry in itertools.islice(newest.entries(), _MOST_OFFERED) if entry.status != RUNNING]
    except StoreError as error:
        st.warning(look.plain(texts.STORE_FAILED.format(reason=error)), icon=":material/database_off:")
        kept = []
    offered = {
        entry.id: f"{times.local(entry.created)} · {entry.machine}" + (texts.IMPORTED_TOO if entry.imported else "")
        for entry in kept
    }
    # Where all verdicts are of one run, that has nothing to be compared with in itself.
    offered = {run_id: words for run_id, words in offered.items() if shown != {run_id}}
    # The whole of it is only read where it is chosen.
    made, machine = _memo.get(_BUILT_IN, lambda: (_example().created, environment.machine(_example().environment)))
    return offered | {_BUILT_IN: f"{times.local(made)} · {machine}{texts.EXAMPLE_TOO}"}


def _changed(tried: Sequence[Tried], before: Run) -> None:
    both = [
        (item, item.run, claims.judged(item.claim, before))
        for item in tried
        if item.run is not None and newest.tells_of(item.claim, item.run) and newest.tells_of(item.claim, before)
    ]
    if not both:
        st.caption(texts.NOTHING_IN_BOTH)
        return
    # Verdicts may be of several runs: what explains a change are the facts of its own.
    told = {run.id: "; ".join(_differences(before, run)) for _, run, _ in both}
    alike = len(set(told.values())) == 1
    if alike and (facts := next(iter(told.values()))):
        st.caption(look.plain(facts))
    rows = [
        {
            # First what a narrow page has room for.
            texts.THEN_COLUMN: then.word,
            texts.NOW_COLUMN: item.word,
            texts.CLAIM_COLUMN: item.claim.sentence.replace("`", ""),
            texts.SEEN_COLUMN: item.verdict.sentence if item.verdict else "",
        }
        | ({} if alike else {texts.FACTS_COLUMN: told[run.id]})
        for item, run, then in both
        if then.word != item.word
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
