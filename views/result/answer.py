"""The answer at the top of a comparison: what was measured, what to take, ahead of what, at what cost, and what would
change it. Each part has the way to its evidence."""

import streamlit as st

from measure.judge import answer
from measure.judge.answer import Take
from measure.run.request import RequestError, again
from measure.run.run import Run
from strategies import script
from views.result import actions, details, heading, lookup, texts
from views.ui import look
from views.ui.memo import Memo
from views.ui.parameters import option_key, size_key
from workloads import places

_memo = Memo(__name__)
_COLOURS = {"clear": "green", "tie": "blue", "cannot tell": "orange", "no choice": "gray", "nothing": "gray"}
_SWEEP = "views/pages/sweep.py"


def draw(run: Run, version: int, baseline: str | None, timed: list[str], prefix: str, *, imported: bool) -> None:
    """Draw the answer of a run that has ended. ``timed``: strategies that can be the ``baseline``; ``prefix`` begins
    the widgets' keys; ``imported``: its code may be anybody's."""
    heading.headline(_memo.get((run.id, version, "verdict"), lambda: heading.verdict(run)))
    _ended(run)
    if not prefix:  # of a point, they stand at the top of its sweep
        heading.draw_function(run)
    take = _memo.get((run.id, version, "take"), lambda: answer.take(run))
    if take.strategy is None:
        return
    with st.container(key=f"{prefix}answer"):
        left, right = st.columns([0.45, 0.55], gap="medium")
        with left:
            _take(run, version, take, prefix, imported=imported)
        with right, st.container(gap="small"):
            _against(run, version, baseline, timed, prefix)
            costs = _memo.get((run.id, version, baseline, "costs"), lambda: answer.costs(run, baseline))
            _listed(texts.COSTS, costs, texts.TAB_BREAK_EVEN, prefix)
            _changes(run, version, prefix)


def _ended(run: Run) -> None:
    if run.status == "complete":
        return
    words = texts.ENDED.get(run.status, run.status)
    if run.status == "interrupted" and run.stop_reason:
        words = f"{words}: {run.stop_reason}"
    kept = "" if texts.KEPT in words else f" {look.sentence(texts.KEPT)}"
    st.caption(f":material/info: {look.plain(words)}.{kept}")


def _take(run: Run, version: int, take: Take, prefix: str, *, imported: bool) -> None:
    assert take.strategy is not None
    item = run.measurement(take.strategy)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.html(
            f'<div style="font-size:1.1rem"><span style="opacity:.75">{texts.TAKE}</span> '
            f"<b>{look.strategy_html(item.strategy, item.mapper, item.mode)}</b></div>",
            width="content",
        )
        _evidence(texts.TAB_WHY, prefix)
    st.markdown(f":{_COLOURS[take.word]}-badge[{take.word}] {look.plain(take.reason)}")
    if item.code is not None and not imported:
        source = item.code.source
        if lines := _memo.get((run.id, version, "mapping"), lambda: script.mapping(source)):
            st.code(lines, language="python", wrap_lines=True)
    if take.again and not prefix and not places.viewer():
        count = len(take.again)
        settles = take.word == "tie" or count < len(run.request.strategies)
        label = texts.SETTLE if settles else texts.MEASURE_ALL
        st.button(
            label.format(count=count, budget_s=take.budget_s), key="settle", icon=":material/balance:",
            on_click=_settle, args=(run.id, take), help=texts.SETTLE_HELP.format(count=count),
        )  # fmt: skip


def _settle(run_id: str, take: Take) -> None:
    """Measure what the answer leaves open once more, with a budget that is enough."""
    try:
        asked = lookup.find(run_id).request
        actions.start(again(asked, strategies=list(take.again), budget_s=take.budget_s))
    except RequestError as error:
        st.session_state["notices"] = (texts.NOT_MEASURABLE.format(error=error),)


def _against(run: Run, version: int, baseline: str | None, timed: list[str], prefix: str) -> None:
    known = _memo.get((run.id, version, baseline, "against"), lambda: answer.against(run, baseline))
    if len(timed) < 2:
        return
    lines = []
    for other in known:
        factor, interval = look.factor_with_interval(other.ratio, other.low, other.high)
        told = texts.FASTER_THAN if other.low > 1 else texts.AS_FAST_AS
        lines.append(told.format(factor=factor, interval=interval, strategy=other.strategy, role=other.role))
    _listed(texts.AGAINST, lines, texts.TAB_TABLE, prefix)
    if baseline is not None:
        key = f"{prefix}against"
        st.session_state[key] = baseline
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(texts.BASELINE, width="content")
            st.selectbox(
                texts.BASELINE,
                timed,
                key=key,
                on_change=_set_baseline,
                args=(key,),
                label_visibility="collapsed",
                width=230,
            )


def _set_baseline(key: str) -> None:
    st.session_state["baseline"] = st.session_state[key]


def _listed(part: str, lines: list[str], evidence: str, prefix: str) -> None:
    """Draw a part: its name with the way to the tab of its ``evidence``, and its sentences."""
    with st.container(gap=None):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"**{part}**", width="content")
            _evidence(evidence, prefix)
        st.markdown("\n".join(f"- {look.plain(line)}" for line in lines))


def _evidence(tab: str, prefix: str) -> None:
    st.button(
        tab, type="tertiary", key=look.key(f"{prefix}evidence", tab), icon=":material/south:", on_click=details.show,
        args=(tab, prefix), help=texts.EVIDENCE_HELP.format(tab=tab),
    )  # fmt: skip


def _changes(run: Run, version: int, prefix: str) -> None:
    lines = _memo.get((run.id, version, "changes"), lambda: answer.changes(run))
    if places.viewer() and not lines:
        return
    with st.container(gap=None, key=f"{prefix}changes"):
        st.markdown(texts.CHANGES)
        if lines:
            st.markdown("\n".join(f"- {look.plain(line)}" for line in lines))
        if not places.viewer():
            st.page_link(
                _SWEEP, label=texts.SWEEP_LINK, icon=":material/stacked_line_chart:",
                query_params=_sweep(run),
            )  # fmt: skip


def _sweep(run: Run) -> dict[str, str | list[str]]:
    """Return the query parameters with which the Sweep page sweeps the batch of a comparison."""
    request = run.request
    parameters: dict[str, str | list[str]] = {"workload": request.workload, "dtype": request.dtype}
    parameters |= {size_key(name): str(value) for name, value in request.size.items() if name != "batch"}
    parameters |= {option_key(name): str(value) for name, value in request.workload_options.items()}
    return {**parameters, "device": request.device, "strategies": list(request.strategies) or ["default"]}
