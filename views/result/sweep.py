"""A sweep's result: the question and its answer, lines or the map of winners, each point, costs, memory."""

import html
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import streamlit as st

from measure.judge import pareto, scaling, sweep_analysis, sweep_findings, warnings
from measure.judge.lines import asked_for, measured, readable
from measure.judge.sweep_findings import SweepFindings
from measure.output.sweep_table import cost
from measure.run.run import Run
from views.charts import failures, sweep_front, sweep_lines, sweep_map
from views.result import heading, sweep_point
from views.ui import guard, look
from views.ui.memo import Memo, packed
from workloads import places

_memo = Memo(__name__)
_ROW_HEIGHT = 30
_ENDED = {"cancelled": "Cancelled", "interrupted": "Interrupted", "budget": "The time budget was spent"}


def draw_sweep(run: Run, version: int, *, finished: bool, baseline: str | None, imported: bool = False) -> None:
    """Draw a sweep, finished or not; ``imported``: it comes from elsewhere and cannot be continued here."""
    event = None
    with guard.calm("the result"):
        sweep = _memo.get((run.id, version, "findings"), lambda: sweep_findings.findings(run))
        pair = _question(sweep)
        if measured(run) or (finished and any(point.measurements for point in run.points)):
            names = [line.slug for line in sweep.lines]
            words = _memo.get((run.id, version, "verdict", *pair), lambda: sweep_analysis.verdict(sweep, *pair))
            heading.headline(words, names)
        if finished:
            _standing(run, imported=imported)
        heading.draw_function(run)
        heading.draw_doubts(doubts(run), "sweep_doubts")
        if len(run.axes) == 2:
            event = _map(sweep, version)
        elif sweep.levels or not finished:  # an axis without a figure would be invented
            event = _lines(sweep, version, pair)
    with guard.calm("the point"):
        sweep_point.draw(run, version, baseline, event, imported=imported)
    with guard.calm("the rest of the result"):
        _failures(sweep)
        _scaling(sweep)
        _front(run, version)


def _question(sweep: SweepFindings) -> tuple[str, ...]:
    """Draw the question with its two lists, and return the strategies that are asked about: those that are picked, or
    the only two; none where it is asked who leads."""
    run, axis = sweep.run, sweep.run.axes[0]
    labels = {line.slug: line.label for line in sweep.lines}
    if len(run.axes) == 2 or len(labels) < 2:
        return ()
    both = len(labels) == 2 == len(sweep.levels) and axis.kind == "size"
    only_two = tuple(reversed(labels)) if both else (None, None)
    with st.container(horizontal=True, gap="small", key="question", vertical_alignment="center"):
        picked, stays = [], st.session_state.get("pair_run") == run.id
        st.session_state["pair_run"] = run.id
        lists = (("pair_one", "Where does", "any strategy"), ("pair_other", "overtake", "another"))
        for (key, words, open_), first in zip(lists, only_two, strict=True):
            if not stays or st.session_state.get(key) not in labels:
                st.session_state[key] = first
            st.markdown(words, width="content")
            picked.append(
                st.selectbox(
                    words, list(labels), index=None, key=key, placeholder=open_, width=240,
                    label_visibility="collapsed", format_func=labels.__getitem__,
                )
            )  # fmt: skip
        grows = f"as **{look.plain(axis.name)}** grows from {axis.values[0]:,} to {axis.values[-1]:,}?"
        st.markdown(grows, width="content")
    one, other = picked
    return (one, other) if one and other and one != other else ()


def _standing(run: Run, *, imported: bool) -> None:
    grid = [point for point in run.points if asked_for(run, point)]
    if run.status != "complete":
        done = f"{sum(point.status == 'complete' for point in grid)} of {len(grid)} points are complete"
        rest = "" if imported or places.viewer() else ", and Continue measures the rest"
        ended = _ENDED.get(run.status, run.status)
        st.caption(f":material/info: {ended}: {done}. What was measured is kept{rest}.")
    reasons = [point.reason for point in grid if point.status == "skipped" and not point.ranking]
    if grid and len(reasons) == len(grid):
        st.warning(look.plain(f"No point was measured. {look.sentence(reasons[0])}"), icon=":material/block:")


def doubts(run: Run) -> list[str]:
    """Return what the sweep cannot tell, each warning once: of its points with the first one that has it, and how many
    more do; then those of the whole."""
    places: dict[str, list[str]] = {}
    first: dict[str, str] = {}
    for point in run.points:
        for warning in point.warnings:
            if warning.code in warnings.OF_A_VERDICT:
                places.setdefault(warning.code, []).append(readable(point.at))
                first.setdefault(warning.code, warning.message)
    sentences = []
    for code, (place, *others) in places.items():
        more = f", and likewise at {len(others)} more point{'s' if len(others) > 1 else ''}" if others else ""
        sentences.append(look.sentence(f"at {place}{more}: {first[code]}"))
    return sentences + [look.sentence(warning.message) for warning in run.warnings if warning.code not in places]


# --- charts ----------------------------------------------------------------------------------------------------------


def _frame(make: Callable[[], Any], *key: object) -> pa.Table:
    return _memo.get(key, lambda: packed(make()))


def _lines(sweep: SweepFindings, version: int, pair: tuple[str, ...]) -> Any:
    """Draw latency and memory along the axis; return the event of a click on a point."""
    run, axis, event = sweep.run, sweep.run.axes[0], None
    st.html(look.legend_html([line.mapper for line in sweep.lines], [line.mode for line in sweep.lines], lines=True))
    quantities: tuple[sweep_lines.Quantity, ...] = ("latency", "memory")
    with st.grid(2, min_column_width=480, gap="medium", key="sweep_charts") as grid:
        for quantity in quantities:
            key = (run.id, version, quantity, *pair)
            frame = _frame(partial(sweep_lines.frame, sweep, quantity, pair), *key)
            if not frame.num_rows:
                continue
            drawn, alt = sweep_lines.specification(quantity, axis), partial(sweep_lines.takeaway, sweep, quantity)
            chart = partial(
                st.vega_lite_chart, frame, drawn, key=f"sweep_{quantity}", alt=_memo.get((*key, "alt"), alt)
            )
            with grid.cell():
                st.markdown(f"**{quantity.capitalize()}** of one call over {look.plain(axis.name)}")
                if quantity == "latency":
                    event = chart(on_select="rerun", selection_mode=sweep_map.SELECTION)
                else:
                    chart()
    st.caption("Band: 95 % interval. Ring: one overtakes another, with its interval. ✕: did not work, or was not run.")
    return event


def _map(sweep: SweepFindings, version: int) -> Any:
    """Draw the map; return the event of a click on a cell."""
    run, (across, up) = sweep.run, sweep.run.axes
    frame = _frame(partial(sweep_map.frame, sweep), run.id, version, "map")
    count = f"{len(measured(run))} of {len(run.points)} cells measured"
    st.markdown(f"**Who is fastest** at each {look.plain(across.name)} and {look.plain(up.name)}: {count}")
    st.html(sweep_map.legend_html(sweep))
    drawn = sweep_map.sized(sweep_map.specification(across.name, up.name), run)
    event = st.vega_lite_chart(
        frame, drawn, key="sweep_map", alt=sweep_map.takeaway(sweep), on_select="rerun",
        selection_mode=sweep_map.SELECTION,
    )  # fmt: skip
    st.caption(sweep_map.about(sweep))
    return event


# --- the rest --------------------------------------------------------------------------------------------------------


def _failures(sweep: SweepFindings) -> None:
    rows = failures.by_reason(sweep.lines)
    if not rows:
        return
    st.markdown(f"**Did not work, or was not run** ({len({line.slug for alike, _ in rows for line in alike})})")
    with st.container(border=True, gap="small", key="failures"):
        for alike, words in rows:
            names = "".join(look.strategy_html(line.slug, line.mapper, line.mode) for line in alike)
            st.html(
                f'<div style="display:flex;flex-wrap:wrap;gap:0 1em">{names}'
                f'<span style="overflow-wrap:anywhere">{html.escape(words)}</span></div>'
            )


def _scaling(sweep: SweepFindings) -> None:
    if not sweep.fits:
        return
    axis, labels = sweep.run.axes[0].name, {line.slug: line.label for line in sweep.lines}
    slope = "cost per element" if axis == "batch" else f"cost for each of {axis}"
    st.markdown(f"**Scaling**: latency ≈ a + b · {look.plain(axis)}")
    st.dataframe(
        [
            {
                "strategy": labels.get(fit.strategy, fit.strategy),
                "fixed cost per call, a": cost(fit.fixed_s, fit.fixed_low_s, fit.fixed_high_s),
                f"{slope}, b": cost(fit.per_element_s, fit.per_element_low_s, fit.per_element_high_s),
                "grows as": scaling.power(axis, growth) if growth else look.MISSING,
            }
            for fit, growth in sorted(sweep.fits, key=lambda of: of[0].per_element_s)
        ],
        hide_index=True, key="scaling", row_height=_ROW_HEIGHT,
        alt=f"Fixed cost per call, {slope} and growth of each strategy",
    )  # fmt: skip
    curved = len(sweep.run.fits) - len(sweep.fits)
    if curved:
        st.caption(f"Not along a straight line, and so left out: {curved} of {len(sweep.run.fits)}.")


def _front(run: Run, version: int) -> None:
    at, measurements = sweep_front.subject(run, sweep_point.chosen(run))
    words = sweep_front.sentence(measurements)
    if not words:
        return
    st.markdown(f"**Latency against memory**{f' at {look.plain(readable(at))}' if at else ''}")
    if len(pareto.front(measurements)) > 1:  # one point alone is no chart
        frame = _frame(partial(sweep_front.frame, measurements), run.id, version, "front", *at.values())
        st.vega_lite_chart(frame, sweep_front.SPEC, key="front_chart", alt=f"Latency against memory. {words}")
    st.caption(look.named(words, [item.strategy for item in measurements]))
