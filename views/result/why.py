"""The tab «Why»: each strategy in a sentence; what runs in a call of it, and which memory that holds; files of it."""

from collections.abc import Hashable

import pandas as pd
import pyarrow as pa
import streamlit as st

from measure import client
from measure.judge import reasons
from measure.judge.findings import Findings
from measure.run import why
from measure.run.place import StoreError
from measure.run.request import RequestError
from measure.run.run import Measurement, Run
from views.charts import memory_timeline, names
from views.result import exports
from views.result.progress import cancel
from views.ui import guard, look, session
from views.ui.memo import Memo, packed
from workloads import places

_memo = Memo(__name__)
_POLL_S = 1.0
_THREE, _ALL = "the three that matter", "all"
_NONE = "This run holds no reasons. "
_OWN_RUNS_ALONE = "Only who started a run can have it explained here. «Measure again here» gives one of your own."
_ABOUT = (
    "Each strategy is called a few times more, in a process of its own, while TensorFlow's profiler watches: a second "
    "or two each. The figures of the run stay as they are."
)
_FILES = {
    why.GRAPH: ("Graph", "The traced graph and its functions, a line for each node."),
    why.HLO: ("Optimised HLO", "XLA's program after all its passes."),
    why.TRACE: ("Trace", "The events of one call: open it in ui.perfetto.dev."),
}


def draw(result: Findings, version: Hashable, prefix: str, *, imported: bool) -> None:
    """Draw the tab; where nothing is explained yet, the button that asks for it. ``prefix`` begins the widgets' keys;
    ``imported``: the run comes from elsewhere."""
    run, explained = result.run, [row for row in result.rows if why.explained(row.measurement.why)]
    if not (places.viewer() or prefix or imported):
        _ask(run)
    elif not explained:
        one_of_your_own = "«Measure again here» gives one that can be asked for them." * (imported and not prefix)
        st.caption(_NONE + one_of_your_own)
    if any(isinstance(row.measurement.why, why.Explained) for row in result.rows):
        sentences = _memo.get((run.id, version, "sentences"), lambda: reasons.predicates(result))
        lines = [
            f'<div style="margin-bottom:.45rem"><b>{look.strategy_html(row.slug, row.mapper, row.mode)}</b> '
            f'<span style="overflow-wrap:anywhere">{look.code_html(sentences[row.slug])}</span></div>'
            for row in result.rows
        ]
        st.html(f'<div style="font-size:.95rem;line-height:1.45">{"".join(lines)}</div>')
    _calls(result, version, prefix)


# --- asking ----------------------------------------------------------------------------------------------------------


def _ask(run: Run) -> None:
    """Draw the button that asks for the reasons, how far they are, or why they cannot be had here."""
    if client.shared().explanation(run.id) is not None:
        st.fragment(_watch, run_every=_POLL_S)(run.id, *reasons.progress(run))
        return
    able = reasons.explainable(run)
    explained = sum(why.explained(item.why) is not None for item in able)
    if refusal := st.session_state.pop("why_refusal", None):
        st.warning(look.plain(look.sentence(refusal)), icon=":material/block:")
    if not able:
        st.caption("No strategy has a steady call that could be explained.")
    elif explained < len(able):  # what failed to be explained may be asked for again
        snapshot = client.shared().snapshot(run.id)
        if snapshot is None or not session.may(snapshot.owner):
            st.caption(_OWN_RUNS_ALONE)
            return
        st.caption(f"{explained} of {len(able)} strategies are explained." if explained else _ABOUT)
        label = "Explain the rest" if explained else "Explain this run"
        st.button(label, key="explain", icon=":material/search_insights:", on_click=_explain, args=(run.id,))


def _explain(run_id: str) -> None:
    try:
        client.shared().explain(run_id, session.visitor())
    except (RequestError, StoreError, ValueError) as error:
        st.session_state["why_refusal"] = str(error)


def _watch(run_id: str, shown: int, able: int) -> None:
    with guard.calm("the progress of the explanation"):
        job = client.shared().explanation(run_id)
        if job is None or reasons.progress(job[1].run)[0] != shown:
            st.rerun()
            return
        work_id, snapshot = job
        words = "waiting in the queue" if snapshot.state == "queued" else snapshot.message or snapshot.state
        with st.container(border=True, horizontal=True, vertical_alignment="center", key="explaining"):
            st.progress(shown / able if able else 0.0, text=look.plain(words), width="stretch")
            if session.may(snapshot.owner):
                icon = ":material/stop_circle:"
                st.button("Cancel", key="cancel_why", icon=icon, on_click=cancel, args=(work_id,))


# --- calls of one strategy, or the memory of several -----------------------------------------------------------------


def _calls(result: Findings, version: Hashable, prefix: str) -> None:
    """Draw the memory that a call holds over time, of those that tell most or of one that is picked, whose ops, kernels
    and files are there too."""
    held = {item.strategy: item for item in memory_timeline.known(result.run.measurements)}
    rows = [row for row in result.rows if row.slug in held]
    groups = {_THREE: memory_timeline.telling(rows), _ALL: [row.slug for row in rows]} if rows else {}
    single = [row.slug for row in result.rows if row.slug in held or why.explained(row.measurement.why)]
    if not single:
        return
    picked = st.selectbox("In one call of", [*groups, *single], key="why_of")
    if picked not in groups:
        _ran(result.run.measurement(picked), prefix)
        if not prefix:
            _files(result.run, picked)
    shown = [held[slug] for slug in groups.get(picked, [picked]) if slug in held]
    if shown:
        key = (result.run.id, version, "timeline", picked)
        frame: pa.Table = _memo.get(key, lambda: packed(memory_timeline.frame(shown)))
        peak = max(shown, key=lambda item: item.memory.peak_bytes if item.memory else 0)
        most = look.size(peak.memory.peak_bytes if peak.memory else None)
        st.html(look.legend_html([item.mapper for item in shown], [item.mode for item in shown], lines=True))
        st.vega_lite_chart(
            frame, names.sized(memory_timeline.SPEC, frame), key=f"{prefix}timeline",
            alt=f"Memory held over one call: {peak.strategy} holds {most} at most.",
        )  # fmt: skip
        st.caption("One steady call; inputs and captured variables exist before it and are not counted.")


def _ran(item: Measurement, prefix: str) -> None:
    """Draw what ran in a call of a strategy, and what held its memory at the peak."""
    left, right = st.columns(2, gap="medium")
    if ran := [*item.why.ops, *item.why.kernels]:
        rows = [{"op or kernel": row.name, "count": row.count, "time": look.seconds(row.seconds)} for row in ran]
        left.dataframe(rows, hide_index=True, key=f"{prefix}why_ran", alt="The ops and kernels of one call")
    if item.memory is not None and (peak_bytes := item.memory.peak_bytes):
        parts = [(part.op or "not named", look.size(part.bytes), look.percent(part.bytes / peak_bytes))
                 for part in item.memory.at_peak]  # fmt: skip
        held = pd.DataFrame(parts, columns=["at the peak of memory", "holds", f"of {look.size(peak_bytes)}"])
        right.dataframe(held, hide_index=True, key=f"{prefix}why_held", alt="What held memory at its peak")


def _files(run: Run, slug: str) -> None:
    try:
        kinds = client.shared().store.artifacts(run.id, slug)
    except StoreError as error:
        st.caption(f"Graph, program and trace cannot be read: {look.plain(str(error))}.")
        return
    with st.container(horizontal=True, key="why_artifacts", gap="small"):
        for kind in kinds:
            label, about = _FILES.get(kind, (kind, ""))
            address = exports.of_run(run.id, "artifact", strategy=slug, name=kind)
            st.link_button(label, address, help=about, key=look.key("artifact", kind), icon=":material/download:")
