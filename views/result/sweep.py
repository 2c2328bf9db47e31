"""A sweep's result: lines with their crossovers, or the map of winners; scaling; latency against memory; each point."""

import html
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import streamlit as st

from measure import client
from measure.judge import rules, scaling, sweep_analysis
from measure.judge.crossovers import sentence
from measure.judge.lines import inferred, lines, place, readable
from measure.output.sweep_table import cost
from measure.run.run import Crossover, Measurement, Run
from views.charts import base, failures, sweep_front, sweep_lines, sweep_map
from views.charts import texts as chart_texts
from views.result import heading, sweep_pair, sweep_point, texts
from views.ui import guard, look
from views.ui.memo import Memo, packed

_memo = Memo(__name__)
_ROW_HEIGHT = 30
_FRONT_AT, _FRONT_CHOSEN = "front_at", "front_chosen"


def draw_sweep(run: Run, version: int, *, finished: bool, baseline: str | None, imported: bool = False) -> None:
    event = None
    with guard.calm(texts.THE_RESULT):
        if finished:
            _standing(run, version, imported=imported)
        heading.draw_doubts(doubts(run), "sweep_doubts")
        event = _map(run, version) if len(run.axes) == 2 else _latency(run, version)
        if len(run.axes) == 1:
            _crossovers(run, version, finished)
    with guard.calm(texts.THE_POINT):
        sweep_point.draw(run, version, baseline, event, imported=imported)
    with guard.calm(texts.THE_REST):
        if len(run.axes) == 1:
            _memory(run, version)
        _failures(run)
        _scaling(run, version)
    with guard.calm(texts.THE_FRONT):
        _front(run)


def _standing(run: Run, version: int, *, imported: bool) -> None:
    """Draw a sentence or two on how a sweep came out. One that was ``imported`` cannot be continued here."""
    if run.verdict:
        heading.headline(_memo.get((run.id, version, "verdict"), lambda: heading.verdict(run)))
        if heading.is_earlier(run) and imported:
            st.caption(texts.FILES_SENTENCE)
    if run.status != "complete":
        ended = texts.SWEEP_ENDED.get(run.status, run.status)
        done = sum(point.status == "complete" for point in run.points)
        kept = texts.POINTS_KEPT if imported else texts.POINTS_CONTINUE
        st.caption(kept.format(ended=ended, done=done, points=len(run.points)))
    skipped = [point for point in run.points if point.status == "skipped" and not point.ranking]
    if skipped and len(skipped) == len(run.points):
        reason = look.sentence(skipped[0].reason)
        st.warning(look.plain(texts.NOTHING_MEASURED.format(reason=reason)), icon=":material/block:")
    heading.draw_function(run)


def doubts(run: Run) -> list[str]:
    """Return what the sweep cannot tell, each warning once: of its points with the first one that has it, and how many
    more do; then those of the whole."""
    places: dict[str, list[str]] = {}
    first: dict[str, str] = {}
    for point in run.points:
        for warning in point.warnings:
            if warning.code in rules.OF_A_VERDICT:
                places.setdefault(warning.code, []).append(readable(point.at))
                first.setdefault(warning.code, warning.message)
    said = []
    for code, (first_place, *others) in places.items():
        count = len(others)
        where = texts.DOUBT_AT_MORE if count > 1 else texts.DOUBT_AT_TWO if count else texts.DOUBT_AT
        said.append(look.sentence(where.format(place=first_place, count=count, doubt=first[code])))
    return said + [look.sentence(warning.message) for warning in run.warnings if warning.code not in places]


# --- one axis --------------------------------------------------------------------------------------------------------


def _latency(run: Run, version: int) -> Any:
    """Draw the lines; return the event of a click on a point of one."""
    axis, strategy_lines = run.axes[0], lines(run.points, run.axes)
    mappers, modes = [line.mapper for line in strategy_lines], [line.mode for line in strategy_lines]
    st.markdown(texts.SWEEP_LATENCY.format(axis=look.plain(axis.name)))
    st.html(look.legend_html(mappers, modes, lines=True))
    pair = sweep_pair.asked(run) or ()
    crossings = sweep_pair.crossings(run, version, pair) if pair else ()
    frame = _frame(run, version, "latency", pair, crossings)
    if not frame.num_rows:
        return None
    event = st.vega_lite_chart(
        frame, sweep_lines.specification("latency", axis), key="sweep_latency", on_select="rerun",
        selection_mode=sweep_map.SELECTION, alt=_alt(run, version, "latency"),
    )  # fmt: skip
    st.caption(texts.SWEEP_LATENCY_ABOUT)
    return event


def _memory(run: Run, version: int) -> None:
    frame = _frame(run, version, "memory", sweep_pair.asked(run) or ())
    if not frame.num_rows:
        return
    st.markdown(texts.SWEEP_MEMORY.format(axis=look.plain(run.axes[0].name)))
    drawn = sweep_lines.specification("memory", run.axes[0])
    st.vega_lite_chart(frame, drawn, key="sweep_memory", alt=_alt(run, version, "memory"))


def _frame(
    run: Run, version: int, quantity: sweep_lines.Quantity, asked: Sequence[str], crossings: Sequence[Crossover] = ()
) -> pa.Table:
    key = (run.id, version, quantity, *asked)
    return _memo.get(
        key, lambda: packed(base.revised(sweep_lines.frame(run, quantity, asked, crossings), *map(str, key)))
    )


def _alt(run: Run, version: int, quantity: sweep_lines.Quantity) -> str:
    return _memo.get((run.id, version, quantity, "alt"), lambda: sweep_lines.takeaway(run, quantity))


def _crossovers(run: Run, version: int, finished: bool) -> None:
    """Draw the question about two strategies, and where others that lead overtake each other."""
    if not run.crossovers and not (finished and sweep_analysis.measured(run)):
        return
    st.markdown(texts.CROSSOVERS)
    with st.container(key="crossovers", gap="small"):
        said = sweep_pair.draw(run, version)
        others = [crossover for crossover in run.crossovers if {crossover.a, crossover.b} != set(said)]
        if not run.crossovers:
            st.caption(texts.NO_CROSSOVER)
        if crossings := [crossover for crossover in others if crossover.value is not None]:
            st.markdown("\n".join(f"- {look.plain(sentence(crossover))}" for crossover in crossings))
        if without := [crossover for crossover in others if crossover.value is None]:
            pairs = texts.ONE_PAIR_APART if len(without) == 1 else texts.PAIRS_APART
            with st.expander(pairs.format(count=len(without)), type="compact", key="no_crossing"):
                st.caption("\n".join(f"- {look.plain(sentence(crossover))}" for crossover in without))


def _failures(run: Run) -> None:
    lists = {
        texts.DID_NOT_WORK: ("failures", failures.did_not_work(run)),
        texts.NOT_RUN: ("not_run", failures.not_run(run)),
    }
    for title, (key, rows) in lists.items():
        if not rows:
            continue
        st.markdown(title.format(count=sum(len(alike) for alike, _ in rows)))
        with st.container(border=True, gap="small", key=key):
            for alike, words in rows:
                names = "".join(look.strategy_html(line.slug, line.mapper, line.mode) for line in alike)
                st.html(
                    f'<div style="display:flex;flex-wrap:wrap;gap:0 1em">{names}'
                    f'<span style="overflow-wrap:anywhere">{html.escape(words)}</span></div>'
                )


def _scaling(run: Run, version: int) -> None:
    if not run.fits:
        return
    modes = {line.slug: line.mode for line in lines(run.points, run.axes)}
    axis = run.axes[0].name
    growths = _memo.get((run.id, version, "growth"), lambda: scaling.growths(run))
    slope = texts.PER_ELEMENT if axis == "batch" else texts.PER_OTHER.format(axis=axis)
    st.markdown(texts.SCALING.format(axis=look.plain(axis)))
    st.dataframe(
        [
            {
                texts.STRATEGY_COLUMN: look.label(fit.strategy, modes.get(fit.strategy, "")),
                texts.FIXED_COST: cost(fit.fixed_s, fit.fixed_low_s, fit.fixed_high_s),
                texts.SLOPE.format(slope=slope): cost(fit.per_element_s, fit.per_element_low_s, fit.per_element_high_s),
                texts.GROWS_AS: scaling.power(axis, growths[fit.strategy]) if fit.strategy in growths else "–",
                texts.FIT_NOTE: fit.note,
            }
            for fit in sorted(run.fits, key=lambda fit: fit.per_element_s)
        ],
        hide_index=True, key="scaling", row_height=_ROW_HEIGHT,
        alt=texts.SCALING_ALT.format(slope=slope),
    )  # fmt: skip


# --- two axes --------------------------------------------------------------------------------------------------------


def _map(run: Run, version: int) -> Any:
    """Draw the map; return the event of a click on a cell."""
    frame = _memo.get((run.id, version, "map"), lambda: packed(base.revised(sweep_map.frame(run), run.id, version)))
    across, up = run.axes
    measured = sum(bool(point.ranking) and not inferred(point) for point in run.points)
    st.markdown(
        texts.MAP.format(
            across=look.plain(across.name), up=look.plain(up.name), measured=measured, cells=len(run.points)
        )
    )
    st.html(sweep_map.legend_html(run))
    drawn = sweep_map.sized(sweep_map.specification(across.name, up.name), run)
    return st.vega_lite_chart(
        frame, drawn, key="sweep_map", alt=sweep_map.takeaway(run), on_select="rerun",
        selection_mode=sweep_map.SELECTION,
    )  # fmt: skip


# --- latency against memory ------------------------------------------------------------------------------------------


def _front(run: Run) -> None:
    if not sweep_front.offered(run):
        return
    with st.container(key="front", gap="small"):
        st.markdown(texts.FRONT)
        st.fragment(_draw_front)(run.id)


def _draw_front(run_id: str) -> None:
    # A fragment: the slider moves without the rest of the page. It is kept with what it is given: that is no run.
    snapshot = client.shared().snapshot(run_id)
    if snapshot is None:
        return
    run, version = snapshot.run, snapshot.version
    index = None if sweep_front.by_option(run) else _choose_point(run)
    measurements = sweep_front.subject(run, index)
    limit_bytes = _slider(run, measurements)
    st.markdown(look.plain(sweep_front.sentence(measurements, limit_bytes)))
    key = (run.id, version, index, limit_bytes)
    frame = _memo.get((*key, "front"), lambda: packed(base.revised(sweep_front.frame(measurements, limit_bytes), *key)))
    st.vega_lite_chart(frame, sweep_front.SPEC, key="front_chart", alt=sweep_front.takeaway(measurements))
    st.caption(chart_texts.FRONT_ABOUT)


def _choose_point(run: Run) -> int:
    """Draw the list of points; the largest one is chosen at first."""
    offered = {place(run.points[index]): index for index in sweep_front.offered(run)}
    names = {where: readable(run.points[index].at) for where, index in offered.items()}
    chosen = sweep_point.chosen_place(_FRONT_CHOSEN, run)
    st.session_state[_FRONT_AT] = chosen if chosen in offered else max(offered)
    picked = st.selectbox(
        texts.FRONT_AT, list(offered), key=_FRONT_AT, on_change=sweep_point.choose,
        args=(_FRONT_CHOSEN, _FRONT_AT, run.id), format_func=names.__getitem__,
    )  # fmt: skip
    return offered[picked]


def _slider(run: Run, measurements: Sequence[Measurement]) -> int:
    """Draw the slider of the memory that there is, in bytes: beyond all that is needed, until it is moved; then as near
    to that as is offered."""
    offered = sweep_front.steps(measurements)
    chosen = st.session_state.get("memory_dial") if st.session_state.get("dial_chosen") == run.id else None
    st.session_state["memory_dial"] = min(max(chosen, offered[0]), offered[-1]) if chosen else offered[-1]
    return int(
        st.select_slider(
            texts.MEMORY_DIAL,
            offered,
            key="memory_dial",
            format_func=look.size,
            on_change=_chosen,
            args=("dial_chosen", run.id),
        )
    )


def _chosen(key: str, run_id: str) -> None:
    st.session_state[key] = run_id
