"""The tab «Why»: the sentences, the figures behind them, and the artifacts to open elsewhere."""

import re
from typing import Any

import pandas as pd
import streamlit as st

from measure import runner
from measure.judge import limit, reasons
from measure.model import why
from measure.model.place import StoreError
from measure.model.request import RequestError
from measure.model.run import Measurement, Run
from measure.model.why import Why
from measure.output.rows import Row
from views.result import exports, texts
from views.result.progress import cancel
from views.ui import guard, look, session
from views.ui.memo import Memo, packed
from workloads import places

_memo = Memo(__name__)
_POLL_S = 1.0
_UNIT = re.compile(r"(?<=\d) (?=[%×µnm]|s\b|MiB|KiB)")
_MOST_SHOWN = 20_000  # signs of a text on the page; the file has all
_WHAT = {
    why.GRAPH: (texts.GRAPH, texts.GRAPH_HELP),
    why.HLO: (texts.HLO, texts.HLO_HELP),
    why.TRACE: (texts.TRACE, texts.TRACE_HELP),
}


def draw(run: Run, version: int, rows: list[Row], prefix: str, *, imported: bool) -> None:
    """Draw the tab; where nothing is explained yet, the button that asks for it."""
    by_slug = {item.strategy: item for item in run.measurements}
    explained = [row for row in rows if why.known(by_slug[row.slug].why) is not None]
    if places.viewer():
        if not explained:
            st.caption(texts.NO_REASONS)
    elif prefix or imported:
        if not explained:
            st.caption(texts.NO_REASONS_IMPORTED if imported else texts.NO_REASONS_EXAMPLE)
    else:
        _ask(run, whole=not explained)
    if not any(isinstance(by_slug[row.slug].why, why.Explained) for row in rows):
        return
    predicates = _memo.get((run.id, version, "sentences"), lambda: reasons.predicates(run))
    st.html(_sentences(rows, predicates))
    if run.limit is not None and limit.tells(run):
        st.caption(look.plain(look.sentence(f"{limit.FLOOR}: {limit.describe(run.limit)}")))
    if not explained:
        return
    st.dataframe(
        _memo.get((run.id, version, "figures"), lambda: packed(_figures(explained, by_slug))), hide_index=True,
        key=f"{prefix}why_figures", placeholder=look.MISSING, column_config=_columns(),
        alt=texts.FIGURES_ALT,
    )  # fmt: skip
    options = [row.slug for row in explained]
    if st.session_state.get("why_of") not in options:
        st.session_state["why_of"] = options[0]
    picked = st.selectbox(texts.STRATEGY, options, key="why_of")
    _one(run, by_slug[picked], prefix)


def _ask(run: Run, *, whole: bool) -> None:
    """Draw the button that asks for the reasons, how far they are, or why they cannot be had here."""
    job = runner.shared().explanation(run.id)
    if job is not None and job[1].state != "finished":
        st.fragment(_watch, run_every=_POLL_S)(run.id, *reasons.progress(job[1].run))
        return
    able = reasons.explainable(run)
    explained = sum(why.known(item.why) is not None for item in able)
    ended_meanwhile = job is not None and reasons.progress(job[1].run)[0] > reasons.progress(run)[0]
    if job is not None and ended_meanwhile and st.session_state.get("why_ended") != job[0]:
        st.session_state["why_ended"] = job[0]  # once, also where the store does not have it
        st.rerun()
    refusal = st.session_state.pop("why_refusal", None)
    if refusal:
        st.warning(look.plain(look.sentence(refusal)), icon=":material/block:")
    if job is not None and job[1].fault:
        st.warning(look.plain(look.sentence(job[1].run.stop_reason)), icon=":material/error:")
    if explained < len(able) and not _may_ask(run.id):
        st.caption(texts.EXPLAIN_OWN)
    elif explained < len(able):  # what failed to be explained may be asked for again
        st.caption(texts.EXPLAIN_ABOUT if whole else texts.EXPLAINED.format(explained=explained, able=len(able)))
        st.button(
            texts.EXPLAIN if whole else texts.EXPLAIN_REST, key="explain", icon=":material/search_insights:",
            on_click=_explain, args=(run.id,),
        )  # fmt: skip


def _may_ask(run_id: str) -> bool:
    snapshot = runner.shared().snapshot(run_id)
    return snapshot is not None and session.may(snapshot.owner)


def _explain(run_id: str) -> None:
    try:
        runner.shared().explain(run_id, session.visitor())
    except (RequestError, StoreError, ValueError) as error:
        st.session_state["why_refusal"] = str(error)


def _watch(run_id: str, shown: int, able: int) -> None:
    with guard.calm(texts.THE_EXPLANATION):
        job = runner.shared().explanation(run_id)
        if job is None or job[1].state == "finished" or reasons.progress(job[1].run)[0] != shown:
            st.rerun()
            return
        job_id, snapshot = job
        with st.container(border=True, horizontal=True, vertical_alignment="center", key="explaining"):
            st.caption(f":material/hourglass_top: {look.plain(_standing(snapshot.state, snapshot.message))}")
            if session.may(snapshot.owner):
                st.button(
                    texts.CANCEL, key="cancel_why", icon=":material/stop_circle:", on_click=cancel, args=(job_id,)
                )  # fmt: skip
        st.progress(shown / able if able else 0.0)


def _standing(state: str, message: str) -> str:
    return texts.EXPLANATION_WAITS if state == "queued" else message or state


def _sentences(rows: list[Row], predicates: dict[str, str]) -> str:
    lines = []
    for row in rows:
        if predicate := predicates.get(row.slug):
            lines.append(
                f'<div style="margin:.15rem 0 .45rem"><b>{look.strategy_html(row.slug, row.mapper, row.mode)}</b> '
                f'<span style="overflow-wrap:anywhere">{look.code_html(_unbroken(predicate))}</span></div>'
            )
    return f'<div style="font-size:.95rem;line-height:1.45">{"".join(lines)}</div>'


def _unbroken(text: str) -> str:
    """Return the text with no line break possible between a number and its unit."""
    return _UNIT.sub("\u00a0", text)


def _figures(rows: list[Row], by_slug: dict[str, Measurement]) -> pd.DataFrame:
    """Return milliseconds and counts; a column that is empty for all strategies is left out."""
    figures = []
    for row in rows:
        explained = why.known(by_slug[row.slug].why)
        assert explained is not None
        parts = why.spent(explained)
        figures.append(
            {
                texts.STRATEGY_COLUMN: row.label,
                "call": 1e3 * explained.call_s,
                "profiled": 1e3 * explained.profiled_s,
                "on the GPU": 1e3 * parts.on_gpu_s or None,
                "in ops": 1e3 * parts.working_s,
                "in Python": 1e3 * parts.python_s,
                "building graphs": 1e3 * parts.building_s or None,
                "waiting": 1e3 * parts.waiting_s or None,
                "between ops": 1e3 * parts.between_s,
                "ops": why.op_count(explained) or None,
                "kernels": explained.kernel_count or None,
                "fusions": explained.fusion_count if explained.loops is not None else None,
                "nodes": explained.graph.nodes if explained.graph else None,
                texts.TRACES: _traces(explained),
                "threads": explained.threads,
                "cores": explained.cores,
                texts.FALLS_BACK: ", ".join(explained.fallbacks) or None,
            }
        )
    frame = pd.DataFrame(figures).dropna(axis="columns", how="all")
    return frame.astype({name: float for name in texts.FIGURES if name in frame})


def _columns() -> dict[str, Any]:
    config: dict[str, Any] = {
        name: st.column_config.NumberColumn(name, format=form, help=text)
        for name, (form, text) in texts.FIGURES.items()
    }
    config[texts.STRATEGY_COLUMN] = st.column_config.TextColumn(texts.STRATEGY_COLUMN, pinned=True)
    return config


def _traces(explained: Why) -> str:
    """Say how often functions were traced, and when: retraces in later calls make a steady call slow."""
    parts = [texts.TRACED_FIRST.format(count=explained.traces_first)] if explained.traces_first else []
    parts += [texts.TRACED_WARM.format(count=explained.traces_warm)] if explained.traces_warm else []
    parts += [texts.TRACED_PER_CALL.format(count=explained.traces_per_call)] if explained.traces_per_call else []
    if explained.tracing_count is not None and explained.tracing_count > 1:
        parts.append(texts.TRACED_ITSELF.format(count=explained.tracing_count))
    return ", ".join(parts) or texts.NONE


def _one(run: Run, item: Measurement, prefix: str) -> None:
    """Draw the ops and kernels of a call of one strategy, and its artifacts."""
    explained = why.known(item.why)
    assert explained is not None
    with st.grid(2, min_column_width=300, gap="medium", key=f"{prefix}why_tables") as grid:
        for kind, ran, column, title, alt in (
            ("ops", explained.ops, texts.OP, texts.OPS, texts.OPS_ALT),
            ("kernels", explained.kernels, texts.KERNEL, texts.KERNELS, texts.KERNELS_ALT),
        ):
            if ran:
                with grid.cell():
                    st.markdown(title)
                    st.dataframe(
                        [{column: op.name, texts.COUNT: op.count, texts.TIME: look.seconds(op.seconds)} for op in ran],
                        hide_index=True, key=f"{prefix}why_{kind}", alt=alt,
                    )  # fmt: skip
        if explained.fusions:
            with grid.cell():
                st.markdown(texts.FUSIONS)
                st.dataframe(
                    [{texts.FUSION: fusion.name, texts.FUSED: ", ".join(fusion.ops)} for fusion in explained.fusions],
                    hide_index=True, key=f"{prefix}why_fusions", alt=texts.FUSIONS_ALT,
                )  # fmt: skip
    if not prefix:
        _artifacts(run, item)


def _artifacts(run: Run, item: Measurement) -> None:
    try:
        names = runner.shared().store.artifacts(run.id, item.strategy)
    except StoreError as error:
        st.caption(texts.NO_ARTIFACTS.format(error=look.plain(str(error))))
        return
    if not names:
        return
    with st.container(horizontal=True, key="why_artifacts", gap="small"):
        for name in names:
            label, about = _WHAT.get(name, (name, ""))
            address = exports.of_run(run.id, "artifact", strategy=item.strategy, name=name)
            st.link_button(label, address, help=about, key=look.key("artifact", name), icon=":material/download:")
    for name in names:
        if name != why.TRACE:
            with st.expander(_WHAT[name][0], type="compact", key=look.key("text", name), on_change="rerun") as opened:
                if opened.open:
                    text = _content(run.id, item.strategy, name).decode(errors="replace")
                    st.code(look.shortened(text, _MOST_SHOWN), language=None, height=320)


def _content(run_id: str, slug: str, name: str) -> bytes:
    return runner.shared().store.artifact(run_id, slug, name) or b""


def text_of(run: Run, slug: str, name: str) -> str:
    """Return an artifact as text; empty where there is none."""
    try:
        return _content(run.id, slug, name).decode(errors="replace")
    except StoreError:
        return ""
