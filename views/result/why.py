"""The tab «Why»: the reasons of each strategy in a sentence and a row, the ops and the memory of one call, files to
open elsewhere."""

import re
from typing import Any

import pandas as pd
import pyarrow as pa
import streamlit as st

from measure import client
from measure.judge import limit, reasons
from measure.judge.findings import Findings, Row
from measure.run import why
from measure.run.place import StoreError
from measure.run.request import RequestError
from measure.run.run import Measurement, Run
from views.charts import names, timeline
from views.result import exports
from views.result.progress import cancel
from views.ui import guard, look, session
from views.ui.memo import Memo, packed
from workloads import places

_memo = Memo(__name__)
_POLL_S = 1.0
_THREE, _ALL = "the three that matter", "all"
_UNBROKEN = "\u00a0"  # between a number and its unit, where no line may break
_UNIT = re.compile(r"(?<=\d) (?=[%×µnm]|s\b|MiB|KiB)")
_NONE = "This run holds no reasons."
_NONE_IMPORTED = f"{_NONE} «Measure again here» gives one that can be asked for them."
_NONE_EXAMPLE = f"{_NONE} A comparison of your own can be asked for them."
_OWN_RUNS_ALONE = "Only who started a run can have it explained here. «Measure again here» gives one of your own."
_ABOUT = (
    "Each strategy is called a few times more, in a process of its own, while TensorFlow's profiler watches: a second "
    "or two each. The figures of the run stay as they are."
)
# Column → format and explanation.
_NUMBERS = {
    "call": ("%.4g ms", "Median of calls that nobody watched."),
    "in ops": ("%.0f %%", "The share of a call in which at least one op or kernel ran on the host."),
    "in dispatch": ("%.0f %%", "The share that is left: starting ops and scheduling them."),
    "in Python": ("%.0f %%", "The share in which the calling thread was outside of TensorFlow's runtime."),
    "in building graphs": ("%.0f %%", "The share in which functions were traced."),
    "in waiting for the GPU": ("%.0f %%", "The share in which the calling thread waited for the GPU."),
    "on the GPU": ("%.4g ms", "How long at least one kernel ran on the GPU, whatever the host did meanwhile."),
    "ops": ("%d", "Ops executed in one call."),
    "kernels": ("%d", "Kernels of XLA or of a GPU in one call."),
    "fusions": ("%d", "Kernels that XLA made of several instructions."),
    "traces": ("%.3g", "Functions that each steady call traces anew."),
    "page faults": ("%.0f", "Minor page faults of a call, the median of the run's samples."),
}
_FILES = {
    why.GRAPH: ("Graph", "The traced graph and its functions, a line for each node."),
    why.HLO: ("Optimised HLO", "XLA's program after all its passes."),
    why.TRACE: ("Trace", "The events of one call: open it in ui.perfetto.dev."),
}


def draw(result: Findings, version: int, prefix: str, *, imported: bool) -> None:
    """Draw the tab; where nothing is explained yet, the button that asks for it. ``prefix`` begins the widgets' keys;
    ``imported``: the run comes from elsewhere."""
    run, rows = result.run, list(result.rows)
    explained = [row for row in rows if why.explained(row.measurement.why) is not None]
    if not (places.viewer() or prefix or imported):
        _ask(run)
    elif not explained:
        st.caption(_NONE if places.viewer() else _NONE_IMPORTED if imported else _NONE_EXAMPLE)
    if any(isinstance(row.measurement.why, why.Explained) for row in rows):
        st.html(_sentences(rows, _memo.get((run.id, version, "sentences"), lambda: reasons.predicates(result))))
        if run.limit is not None and limit.tells(run):
            st.caption(look.plain(look.sentence(f"{limit.FLOOR}: {limit.describe(run.limit)}")))
    if explained:
        _figures_of_calls(run, version, explained, prefix)
    _memory(result, version, prefix)


def _figures_of_calls(run: Run, version: int, explained: list[Row], prefix: str) -> None:
    st.dataframe(
        _memo.get((run.id, version, "figures"), lambda: packed(_figures(explained))), hide_index=True,
        key=f"{prefix}why_figures", placeholder=look.MISSING, alt="What happens in one call of each strategy",
        column_config={
            "strategy": st.column_config.TextColumn(pinned=True),
            **{name: st.column_config.NumberColumn(format=form, help=text) for name, (form, text) in _NUMBERS.items()},
        },
    )  # fmt: skip
    options = [row.slug for row in explained]
    if st.session_state.get("why_of") not in options:
        st.session_state["why_of"] = options[0]
    picked = run.measurement(st.selectbox("Strategy", options, key="why_of"))
    _ran(picked, prefix)
    if not prefix:
        _files(run, picked)


# --- asking ----------------------------------------------------------------------------------------------------------


def _ask(run: Run) -> None:
    """Draw the button that asks for the reasons, how far they are, or why they cannot be had here."""
    job = client.shared().explanation(run.id)
    if job is not None:
        st.fragment(_watch, run_every=_POLL_S)(run.id, *reasons.progress(job[1].run))
        return
    able = reasons.explainable(run)
    if not able:
        st.caption("No strategy has a steady call that could be explained.")
        return
    explained = sum(why.explained(item.why) is not None for item in able)
    refusal = st.session_state.pop("why_refusal", None)
    if refusal:
        st.warning(look.plain(look.sentence(refusal)), icon=":material/block:")
    snapshot = client.shared().snapshot(run.id)
    if explained < len(able) and not (snapshot is not None and session.may(snapshot.owner)):
        st.caption(_OWN_RUNS_ALONE)
    elif explained < len(able):  # what failed to be explained may be asked for again
        st.caption(f"{explained} of {len(able)} strategies are explained." if explained else _ABOUT)
        label = "Explain the rest" if explained else "Explain this run"
        icon = ":material/search_insights:"
        st.button(label, key="explain", icon=icon, on_click=_explain, args=(run.id,))


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
        job_id, snapshot = job
        standing = "waiting in the queue" if snapshot.state == "queued" else snapshot.message or snapshot.state
        with st.container(border=True, horizontal=True, vertical_alignment="center", key="explaining"):
            st.caption(f":material/hourglass_top: {look.plain(standing)}")
            if session.may(snapshot.owner):
                icon = ":material/stop_circle:"
                st.button("Cancel", key="cancel_why", icon=icon, on_click=cancel, args=(job_id,))
        st.progress(shown / able if able else 0.0)


# --- showing ---------------------------------------------------------------------------------------------------------


def _sentences(rows: list[Row], predicates: dict[str, str]) -> str:
    """A line for each strategy."""
    lines = [
        f'<div style="margin:.15rem 0 .45rem"><b>{look.strategy_html(row.slug, row.mapper, row.mode)}</b> '
        f'<span style="overflow-wrap:anywhere">{look.code_html(_UNIT.sub(_UNBROKEN, words))}</span></div>'
        for row in rows
        if (words := predicates.get(row.slug))
    ]
    return f'<div style="font-size:.95rem;line-height:1.45">{"".join(lines)}</div>'


def _figures(rows: list[Row]) -> pd.DataFrame:
    """Return milliseconds, percent and counts; a column that is empty for all strategies is left out."""
    figures: list[dict[str, Any]] = []
    for row in rows:
        item = row.measurement
        reason = why.explained(item.why)
        assert reason is not None
        figures.append(
            {
                "strategy": row.label,
                "call": 1e3 * reason.call_s,
                **{name: 100 * share or None for name, share in why.shares(reason).items()},
                "on the GPU": 1e3 * (reason.in_streams_s or 0.0) or None,
                "ops": reason.op_count or None,
                "kernels": reason.kernel_count or None,
                "fusions": reason.fusion_count if reason.loops is not None else None,
                "traces": reason.traces_per_call or None,
                "falls back for": ", ".join(reason.fallbacks) or None,
                "page faults": limit.page_faults(item),
                "at the peak of memory": reasons.holder(item).replace("`", "") or None,
            }
        )
    frame = pd.DataFrame(figures).dropna(axis="columns", how="all")
    return frame.astype({name: float for name in _NUMBERS if name in frame})


def _ran(item: Measurement, prefix: str) -> None:
    """Draw the ops and kernels of a call of one strategy."""
    tables = (("Ops", "op", item.why.ops), ("Kernels", "kernel", item.why.kernels))
    with st.grid(2, min_column_width=300, gap="medium", key=f"{prefix}why_tables") as grid:
        for title, column, rows in tables:
            if rows:
                with grid.cell():
                    st.markdown(f"**{title}** of one call")
                    st.dataframe(
                        [{column: row.name, "count": row.count, "time": look.seconds(row.seconds)} for row in rows],
                        hide_index=True, key=f"{prefix}why_{column}", alt=f"The {column}s of one call",
                    )  # fmt: skip


def _files(run: Run, item: Measurement) -> None:
    try:
        names = client.shared().store.artifacts(run.id, item.strategy)
    except StoreError as error:
        st.caption(f"Graph, program and trace cannot be read: {look.plain(str(error))}.")
        return
    with st.container(horizontal=True, key="why_artifacts", gap="small"):
        for name in names:
            label, about = _FILES.get(name, (name, ""))
            address = exports.of_run(run.id, "artifact", strategy=item.strategy, name=name)
            st.link_button(label, address, help=about, key=look.key("artifact", name), icon=":material/download:")


# --- memory over one call --------------------------------------------------------------------------------------------


def _memory(result: Findings, version: int, prefix: str) -> None:
    """Draw the memory that a call holds over time, of those that tell most or of one that is picked."""
    timed = {item.strategy: item for item in timeline.known(result.run.measurements)}
    rows = [row for row in result.rows if row.slug in timed]
    if not rows:
        return
    st.markdown("**Memory over one call**")
    groups = {_THREE: timeline.telling(rows), _ALL: [row.slug for row in rows]}
    if len(groups[_THREE]) == len(rows):
        del groups[_THREE]
    options = [*groups, *groups[_ALL]]
    if st.session_state.get("memory_of") not in options:
        st.session_state["memory_of"] = options[0]
    picked = st.selectbox("Strategy", options, key="memory_of")
    share = picked in groups
    chosen = [timed[slug] for slug in groups.get(picked, [picked])]
    st.html(look.legend_html([item.mapper for item in chosen], [item.mode for item in chosen], lines=True))
    key = (result.run.id, version, "timeline", picked)
    frame: pa.Table = _memo.get(key, lambda: packed(timeline.frame(chosen)))
    peak = max(chosen, key=lambda item: item.memory.peak_bytes if item.memory else 0)
    most = look.size(peak.memory.peak_bytes if peak.memory else None)
    st.vega_lite_chart(
        frame, names.sized(timeline.SPEC, frame), key=f"{prefix}timeline",
        alt=f"Memory held over one call: {peak.strategy} holds {most} at most.",
    )  # fmt: skip
    st.caption("One steady call; inputs and captured variables exist before it and are not counted.")
    memory = chosen[0].memory
    if not share and memory is not None and memory.at_peak:
        st.markdown(f"**Held at the peak of {look.size(memory.peak_bytes)}**, by the op that allocated it")
        st.dataframe(
            [
                {"op": part.op or "not named", "memory": look.size(part.bytes),
                 "share": look.percent(part.bytes / memory.peak_bytes) if memory.peak_bytes else look.MISSING}
                for part in memory.at_peak
            ],
            hide_index=True, key="at_peak", alt=f"What held memory at the peak of {picked}",
        )  # fmt: skip
