"""A sweep's result: the question and its answer, lines or the map of winners, each point, costs, memory."""

import html
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import streamlit as st
from msgspec.structs import replace

from measure.judge import findings, sweep_findings
from measure.judge.lines import measured, place, readable
from measure.judge.sweep_findings import SweepFindings
from measure.output.sweep_table import cost
from measure.run.run import Run
from views.charts import failures, names, sweep_front, sweep_lines, sweep_map
from views.choices import address
from views.result import heading
from views.result.compare import ENDED, draw_comparison
from views.ui import guard, look
from views.ui.memo import Memo, packed
from workloads import places

_memo = Memo(__name__)
_ROW_HEIGHT = 30
_MOST_REASONS = 50  # why strategies did not work


def draw_sweep(run: Run, version: int, *, finished: bool, baseline: str | None, imported: bool = False) -> None:
    """Draw a sweep, finished or not; ``imported``: it comes from elsewhere and cannot be continued here."""
    with guard.calm("the result"):
        sweep = _memo.get((run.id, version, "findings"), lambda: sweep_findings.findings(run))
        run, pair = sweep.run, _question(sweep)
        if finished or measured(run):
            words = _memo.get((run.id, version, "verdict", *pair), lambda: sweep_findings.verdict(sweep, *pair))
            heading.headline(words, [line.slug for line in sweep.lines])
        if finished and run.status != "complete":
            rest = "" if imported or places.viewer() else ", and Continue measures the rest"
            ended = ENDED.get(run.status, run.status)
            st.caption(f":material/info: {ended}: {sweep.coverage}. What was measured is kept{rest}.")
        heading.draw_function(run)
        heading.draw_doubts(heading.doubts(run), "sweep_doubts")
        if len(run.axes) == 2:
            _map(sweep, version)
        elif sweep.levels or not finished:  # an axis without a figure would be invented
            _lines(sweep, version, pair)
    with guard.calm("the point"):
        _point(sweep, version, baseline, imported=imported)
    with guard.calm("the rest of the result"):
        _failures(sweep)
        _scaling(sweep)
        _front(sweep, version)


def draw_large(run: Run, version: int) -> None:
    """Draw the verdict and the chart of a sweep that has ended, and nothing to press."""
    sweep = _memo.get((run.id, version, "findings"), lambda: sweep_findings.findings(run))
    words = _memo.get((run.id, version, "verdict"), lambda: sweep_findings.verdict(sweep))
    heading.headline(words, [line.slug for line in sweep.lines])
    heading.draw_doubts(heading.doubts(sweep.run), "sweep_doubts")
    if len(run.axes) == 2:
        _map(sweep, version)
    elif sweep.levels:
        _lines(sweep, version, ())


def _question(sweep: SweepFindings) -> tuple[str, ...]:
    """Draw the question with its two lists, and return the strategies that are asked about: those that are picked, or
    the only two; none where it is asked who leads."""
    run, axis = sweep.run, sweep.run.axes[0]
    labels = {line.slug: look.label(line.slug, line.mode) for line in sweep.lines}
    if len(run.axes) == 2 or len(labels) < 2:
        return ()
    of_two = len(labels) == 2 == len(sweep.levels) and axis.kind == "size"
    picked = []
    with st.container(horizontal=True, gap="small", key="question", vertical_alignment="center"):
        for number, (words, open_) in enumerate((("Where does", "any strategy"), ("overtake", "another"))):
            st.markdown(words, width="content")
            picked.append(
                st.selectbox(
                    words, list(labels), index=1 - number if of_two else None, key=f"pair_{number}_{run.id}",
                    placeholder=open_, width=240, label_visibility="collapsed", format_func=labels.__getitem__,
                )
            )  # fmt: skip
        grows = f"as **{look.plain(axis.name)}** grows from {axis.values[0]:,} to {axis.values[-1]:,}?"
        st.markdown(grows, width="content")
    one, other = picked
    return (one, other) if one and other and one != other else ()


# --- charts ----------------------------------------------------------------------------------------------------------


def _frame(make: Callable[[], Any], *key: object) -> pa.Table:
    return _memo.get(key, lambda: packed(make()))


def _lines(sweep: SweepFindings, version: int, pair: tuple[str, ...]) -> None:
    """Draw latency and memory along the axis; a click on a latency chooses its point."""
    run, axis = sweep.run, sweep.run.axes[0]
    st.html(look.legend_html([line.mapper for line in sweep.lines], [line.mode for line in sweep.lines], lines=True))
    quantities: tuple[sweep_lines.Quantity, ...] = ("latency", "memory")
    with st.grid(2, min_column_width=480, gap="medium", key="sweep_charts") as grid:
        for quantity in quantities:
            key = (run.id, version, quantity, *pair)
            frame = _frame(partial(sweep_lines.frame, sweep, quantity, pair), *key)
            if not frame.num_rows:
                continue
            alt = _memo.get((*key, "alt"), partial(sweep_lines.takeaway, sweep, quantity))
            drawn = names.sized(sweep_lines.specification(quantity, axis), frame)
            with grid.cell():
                st.markdown(f"**{quantity.capitalize()}** of one call over {look.plain(axis.name)}")
                _chart(frame, drawn, f"sweep_{quantity}", alt,
                       chooses=quantity == "latency")  # fmt: skip
    st.caption("Band: 95% CI. Ring: one overtakes another, with its interval. ✕ above: failed or was not run.")


def _map(sweep: SweepFindings, version: int) -> None:
    """Draw the map; a click on a cell chooses its point."""
    run, (across, up) = sweep.run, sweep.run.axes
    st.markdown(f"**Fastest strategy** at each {look.plain(across.name)} and {look.plain(up.name)}: {sweep.coverage}")
    st.html(sweep_map.legend_html(sweep))
    drawn = sweep_map.sized(sweep_map.specification(across.name, up.name), run)
    frame = _frame(partial(sweep_map.frame, sweep), run.id, version, "map")
    _chart(frame, drawn, "sweep_map", sweep_map.takeaway(sweep), chooses=True)
    st.caption(sweep_map.about(sweep))


def _chart(frame: pa.Table, drawn: Any, key: str, alt: str, *, chooses: bool) -> None:
    more: Any = {"on_select": partial(_choose, key), "selection_mode": sweep_map.SELECTION} if chooses else {}
    st.vega_lite_chart(frame, drawn, key=key, alt=alt, **more)


# --- one point -------------------------------------------------------------------------------------------------------


def _list(run_id: str) -> str:
    """Return the key of the list of points: a choice in one run says nothing about another."""
    return f"sweep_point_{run_id}"


def _choose(chart: str) -> None:
    """Choose the point that was clicked, which its mark names with its run (`sweep_map.cell`)."""
    for click in st.session_state[chart].selection.get(sweep_map.SELECTION, []):
        run_id, *at = click[sweep_map.SELECTION].split()
        st.session_state[_list(run_id)] = tuple(map(int, at))


def _point(sweep: SweepFindings, version: int, baseline: str | None, *, imported: bool) -> None:
    """Draw the list of points, and the comparison that the chosen one is."""
    run = sweep.run
    offered = {place(point): point for point in run.points if point.status != "waiting"}
    if not offered:
        return
    picked = st.selectbox(
        "Show the comparison at", list(offered), index=None, key=_list(run.id),
        placeholder="choose a point, or click one above", format_func=lambda at: readable(offered[at].at),
    )  # fmt: skip
    if picked is None:
        return
    point = offered[picked]
    # What is computed of it is kept under its id.
    comparison = replace(sweep_findings.comparison(run, point), id=" ".join(map(str, (run.id, *picked))))
    with st.container(border=True, key="point", gap="small"):
        if run.axes[0].kind == "option":  # the strategies without it were measured at its first value only
            st.caption(look.plain(f"Among all strategies here: {sweep.statement(point)}."))
        # Of one that cannot be asked for here there is nothing to open.
        if not places.viewer() and (own := address.of_run(comparison)):
            st.page_link(
                "views/pages/compare.py", label="Open these choices on the Compare page",
                icon=":material/compare_arrows:",
                query_params={"workload": own["workload"], **address.write("compare", own, {})},
            )  # fmt: skip
        if not point.measurements:
            st.caption(look.plain(look.sentence(sweep_map.state(sweep, point))))
            return
        draw_comparison(
            comparison, version, finished=point.status != "running", baseline=baseline, prefix="point_",
            imported=imported,
        )  # fmt: skip


# --- the rest --------------------------------------------------------------------------------------------------------


def _failures(sweep: SweepFindings) -> None:
    rows = failures.by_reason(sweep.lines)
    if not rows:
        return
    st.markdown(f"**Did not work, or was not run** ({len({line.slug for alike, _ in rows for line in alike})})")
    with st.container(border=True, gap="small", key="failures"):
        for alike, words in rows[:_MOST_REASONS]:
            names = "".join(look.strategy_html(line.slug, line.mapper, line.mode) for line in alike)
            st.html(
                f'<div style="display:flex;flex-wrap:wrap;gap:0 1em">{names}'
                f'<span style="overflow-wrap:anywhere">{html.escape(words)}</span></div>'
            )
        if len(rows) > _MOST_REASONS:
            st.caption(f"{len(rows) - _MOST_REASONS:,} more reasons stand in the exported file.")


def _scaling(sweep: SweepFindings) -> None:
    if not sweep.fits:
        return
    axis, labels = sweep.run.axes[0].name, {line.slug: look.label(line.slug, line.mode) for line in sweep.lines}
    slope = "cost per element" if axis == "batch" else f"cost for each of {axis}"
    st.markdown(f"**Scaling**: latency ≈ a + b · {look.plain(axis)}")
    st.dataframe(
        [
            {
                "strategy": labels.get(fit.strategy, fit.strategy),
                "fixed cost per call, a": cost(fit.fixed_s, fit.fixed_low_s, fit.fixed_high_s),
                f"{slope}, b": cost(fit.per_element_s, fit.per_element_low_s, fit.per_element_high_s),
                "grows as": growth or look.MISSING,
            }
            for fit, growth in sorted(sweep.fits, key=lambda of: of[0].per_element_s)
        ],
        hide_index=True, key="scaling", row_height=_ROW_HEIGHT,
        alt=f"Fixed cost per call, {slope} and growth of each strategy",
    )  # fmt: skip
    if curved := len(sweep.run.fits) - len(sweep.fits):
        st.caption(f"Not along a straight line, and so left out: {curved} of {len(sweep.run.fits)}.")


def _front(sweep: SweepFindings, version: int) -> None:
    run_id = sweep.run.id
    if (subject := sweep_front.subject(sweep, st.session_state.get(_list(run_id)))) is None:
        return
    at, of = subject
    words = sweep_front.sentence(of)
    st.markdown(f"**Latency against memory**{f' at {look.plain(readable(at))}' if at else ''}")
    if len(findings.front(of)) > 1:  # one point alone is no chart
        frame = _frame(partial(sweep_front.frame, of), run_id, version, "front", *at.values())
        st.vega_lite_chart(frame, sweep_front.SPEC, key="front_chart", alt=f"Latency against memory. {words}")
    st.caption(look.named(words, [line.slug for line in sweep.lines]))
