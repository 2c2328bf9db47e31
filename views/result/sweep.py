"""A sweep's result: lines with their crossovers, or the map of winners; scaling; latency against memory; each point."""

import html
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import streamlit as st

from measure.judge import rules
from measure.model.run import Crossover, Measurement, Run
from measure.output.sweep_table import cost
from measure.sweep import cells, findings
from measure.sweep.crossovers import sentence
from measure.sweep.lines import lines
from measure.sweep.places import readable
from views.charts import base, failures, sweep_front, sweep_lines, sweep_map
from views.result import heading, sweep_pair, sweep_point
from views.result.compare import draw_doubts
from views.ui import guard, look
from views.ui.memo import Memo, packed

_memo = Memo()
_ROW_HEIGHT = 30
_FRONT_AT, _FRONT_CHOSEN = "front_at", "front_chosen"


def draw_sweep(run: Run, version: int, *, finished: bool, baseline: str | None, imported: bool = False) -> None:
    event = None
    with guard.calm("the result"):
        if finished:
            _standing(run, version, imported=imported)
        draw_doubts(doubts(run), "sweep_doubts")
        event = _map(run, version) if len(run.axes) == 2 else _latency(run, version)
        if len(run.axes) == 1:
            _crossovers(run, version, finished)
    with guard.calm("the point"):
        sweep_point.draw(run, version, baseline, event, imported=imported)
    with guard.calm("the rest of the result"):
        if len(run.axes) == 1:
            _memory(run, version)
        _failures(run)
        _scaling(run)
    with guard.calm("latency against memory"):
        _front(run, version)


def _standing(run: Run, version: int, *, imported: bool) -> None:
    """Draw a sentence or two on how a sweep came out. One that was ``imported`` cannot be continued here."""
    if run.verdict:
        heading.headline(_memo.get((run.id, version, "verdict"), lambda: heading.verdict(run)))
        if heading.is_earlier(run) and imported:
            st.caption(
                ":material/info: This sentence is the file's: an earlier Mapbench weighed samples in another way."
            )
    if run.status != "complete":
        words = {"cancelled": "Cancelled", "interrupted": "Interrupted", "budget": "The time budget was spent"}
        done = sum(point.status == "complete" for point in run.points)
        rest = "" if imported else ", and Continue measures the rest"
        st.caption(
            f":material/info: {words.get(run.status, run.status)}: {done} of {len(run.points)} points are complete. "
            f"What was measured is kept{rest}."
        )
    skipped = [point for point in run.points if point.status == "skipped" and not point.ranking]
    if skipped and len(skipped) == len(run.points):
        st.warning(look.plain(f"No point was measured. {look.sentence(skipped[0].reason)}"), icon=":material/block:")


def doubts(run: Run) -> list[str]:
    """Return what the sweep cannot tell: for each kind the first point that has it, and how many more do."""
    places: dict[str, list[str]] = {}
    first: dict[str, str] = {}
    for point in run.points:
        for warning in point.warnings:
            if warning.code in rules.OF_A_VERDICT:
                places.setdefault(warning.code, []).append(readable(point.at))
                first.setdefault(warning.code, warning.message)
    said = []
    for code, (place, *others) in places.items():
        more = f", and likewise at {len(others)} more point{'s' * (len(others) > 1)}" if others else ""
        said.append(look.sentence(f"at {place}{more}: {first[code]}"))
    return said


# --- one axis --------------------------------------------------------------------------------------------------------


def _latency(run: Run, version: int) -> Any:
    """Draw the lines; return the event of a click on a point of one."""
    axis, strategy_lines = run.axes[0], lines(run.points, run.axes)
    mappers, modes = [line.mapper for line in strategy_lines], [line.mode for line in strategy_lines]
    st.markdown(f"**Latency** of one call over {look.plain(axis.name)}")
    st.html(look.legend_html(mappers, modes, lines=True))
    pair = sweep_pair.asked(run) or ()
    crossings = sweep_pair.answer(run, version, pair).crossings if pair else ()
    frame = _frame(run, version, "latency", pair, crossings)
    if not frame.num_rows:
        return None
    event = st.vega_lite_chart(
        frame, sweep_lines.specification("latency", axis), key="sweep_latency", on_select="rerun",
        selection_mode=sweep_map.SELECTION, alt=_alt(run, version, "latency"),
    )  # fmt: skip
    st.caption("Band: 95 % interval. Ring: one overtakes another, with its interval. ✕: did not work, or was not run.")
    return event


def _memory(run: Run, version: int) -> None:
    frame = _frame(run, version, "memory", sweep_pair.asked(run) or ())
    if not frame.num_rows:
        return
    st.markdown(f"**Memory** of one call over {look.plain(run.axes[0].name)}")
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
    if not run.crossovers and not (finished and findings.measured(run)):
        return
    st.markdown("**Where one overtakes another**")
    with st.container(key="crossovers", gap="small"):
        said = sweep_pair.draw(run, version)
        others = [crossover for crossover in run.crossovers if {crossover.a, crossover.b} != set(said)]
        if not run.crossovers:
            st.caption("One strategy leads throughout the range: nobody overtakes it.")
        if crossings := [crossover for crossover in others if crossover.value is not None]:
            st.markdown("\n".join(f"- {look.plain(sentence(crossover))}" for crossover in crossings))
        if without := [crossover for crossover in others if crossover.value is None]:
            pairs = f"{len(without)} more pair{'s' * (len(without) > 1)} of leading strategies that do not cross"
            with st.expander(pairs, type="compact", key="no_crossing"):
                st.caption("\n".join(f"- {look.plain(sentence(crossover))}" for crossover in without))


def _failures(run: Run) -> None:
    lists = {
        "Did not work": ("failures", failures.did_not_work(run)),
        "Not run": ("not_run", failures.not_run(run)),
    }
    for name, (key, rows) in lists.items():
        if not rows:
            continue
        st.markdown(f"**{name}** ({sum(len(alike) for alike, _ in rows)})")
        with st.container(border=True, gap="small", key=key):
            for alike, words in rows:
                names = "".join(look.strategy_html(line.slug, line.mapper, line.mode) for line in alike)
                st.html(
                    f'<div style="display:flex;flex-wrap:wrap;gap:0 1em">{names}'
                    f'<span style="overflow-wrap:anywhere">{html.escape(words)}</span></div>'
                )


def _scaling(run: Run) -> None:
    if not run.fits:
        return
    modes = {line.slug: line.mode for line in lines(run.points, run.axes)}
    axis = run.axes[0].name
    slope = "cost per element" if axis == "batch" else f"cost for each of {axis}"
    st.markdown(f"**Scaling**: latency ≈ a + b · {look.plain(axis)}")
    st.dataframe(
        [
            {
                "strategy": look.label(fit.strategy, modes.get(fit.strategy, "")),
                "fixed cost per call, a": cost(fit.fixed_s, fit.fixed_low_s, fit.fixed_high_s),
                f"{slope}, b": cost(fit.per_element_s, fit.per_element_low_s, fit.per_element_high_s),
                "note": fit.note,
            }
            for fit in sorted(run.fits, key=lambda fit: fit.per_element_s)
        ],
        hide_index=True, key="scaling", row_height=_ROW_HEIGHT,
        alt=f"Fixed cost per call and {slope} of each strategy",
    )  # fmt: skip


# --- two axes --------------------------------------------------------------------------------------------------------


def _map(run: Run, version: int) -> Any:
    """Draw the map; return the event of a click on a cell."""
    frame = _memo.get((run.id, version, "map"), lambda: packed(base.revised(sweep_map.frame(run), run.id, version)))
    across, up = run.axes
    measured = sum(bool(point.ranking) and not cells.inferred(point) for point in run.points)
    st.markdown(
        f"**Who is fastest** at each {look.plain(across.name)} and {look.plain(up.name)}: "
        f"{measured} of {len(run.points)} cells measured"
    )
    st.html(sweep_map.legend_html(run))
    drawn = sweep_map.sized(sweep_map.specification(across.name, up.name), run)
    return st.vega_lite_chart(
        frame, drawn, key="sweep_map", alt=sweep_map.takeaway(run), on_select="rerun",
        selection_mode=sweep_map.SELECTION,
    )  # fmt: skip


# --- latency against memory ------------------------------------------------------------------------------------------


def _front(run: Run, version: int) -> None:
    if not sweep_front.offered(run):
        return
    with st.container(key="front", gap="small"):
        st.markdown("**Latency against memory**")
        st.fragment(_draw_front)(run, version)


def _draw_front(run: Run, version: int) -> None:
    # A fragment: the slider moves without the rest of the page.
    index = None if sweep_front.by_option(run) else _choose_point(run)
    measurements, dials = sweep_front.subject(run, index)
    limit_bytes = _slider(run, measurements)
    st.markdown(look.plain(sweep_front.sentence(measurements, limit_bytes)))
    key = (run.id, version, index, limit_bytes)
    frame = _memo.get(
        (*key, "front"), lambda: packed(base.revised(sweep_front.frame(measurements, dials, limit_bytes), *key))
    )
    st.vega_lite_chart(frame, sweep_front.SPEC, key="front_chart", alt=sweep_front.takeaway(measurements))
    st.caption(look.plain(sweep_front.about(dials)))


def _choose_point(run: Run) -> int:
    """Draw the list of points; the largest one is chosen at first."""
    offered = {cells.place(run.points[index]): index for index in sweep_front.offered(run)}
    chosen = sweep_point.chosen_place(_FRONT_CHOSEN, run)
    st.session_state[_FRONT_AT] = chosen if chosen in offered else max(offered)
    picked = st.selectbox(
        "At", list(offered), key=_FRONT_AT, on_change=sweep_point.choose, args=(_FRONT_CHOSEN, _FRONT_AT, run.id),
        format_func=lambda place: readable(run.points[offered[place]].at),
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
            "Memory available",
            offered,
            key="memory_dial",
            format_func=look.size,
            on_change=_chosen,
            args=("dial_chosen", run.id),
        )
    )


def _chosen(key: str, run_id: str) -> None:
    st.session_state[key] = run_id
