"""A sweep's result: lines with their crossovers, or the map of winners; scaling; latency against memory; each point."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import streamlit as st
from msgspec.structs import replace

from measure.judge import rules
from measure.model.run import Measurement, Point, Run
from measure.output.sweep_table import cost
from measure.sweep import cells, findings
from measure.sweep.crossovers import sentence
from measure.sweep.lines import lines
from measure.sweep.places import readable
from views.charts import base, failures, sweep_front, sweep_lines, sweep_map
from views.result import heading
from views.result.compare import draw_comparison, draw_doubts
from views.ui import guard, look
from views.ui.memo import Memo, packed
from views.ui.parameters import option_key, size_key

_memo = Memo()
_ROW_HEIGHT = 30
_COMPARE = "views/pages/compare.py"
# The point that is looked at: the list's choice, and beside it what it stands for. A list tells points by their place,
# not by their number, as points are added between others while crossings are refined.
_POINT, _POINT_CHOSEN = "sweep_point", "sweep_point_chosen"
_FRONT_AT, _FRONT_CHOSEN = "front_at", "front_chosen"


@dataclass(frozen=True)
class Shown:
    """Everything that is drawn of one version of a sweep over one axis; computed once, however often a widget
    changes."""

    latency: pa.Table
    memory: pa.Table
    latency_alt: str
    memory_alt: str


def draw_sweep(run: Run, version: int, *, finished: bool, baseline: str | None, imported: bool = False) -> None:
    with guard.calm("the result"):
        _standing(run, finished)
        draw_doubts(doubts(run), "sweep_doubts")
        if len(run.axes) == 1:
            _lines(run, version)
            _crossovers(run, finished)
            _failures(run)
            _scaling(run)
        else:
            _map(run, version)
    with guard.calm("latency against memory"):
        _front(run, version)
    with guard.calm("the point"):
        _point(run, version, baseline, imported=imported)


def point_run(run: Run, point: Point) -> Run:
    """One point of a sweep as the comparison that it is."""
    place = "-".join(f"{name}-{value}" for name, value in point.at.items())
    # What is computed of it is kept under its id.
    return replace(findings.comparison(run, point), id=f"{run.id}-{place}")


def _standing(run: Run, finished: bool) -> None:
    """Draw a sentence or two on how the sweep came out."""
    if not finished:
        return
    if run.verdict:
        heading.headline(run.verdict)
    if run.status != "complete":
        words = {"cancelled": "Cancelled", "interrupted": "Interrupted", "budget": "The time budget was spent"}
        done = sum(point.status == "complete" for point in run.points)
        st.caption(
            f":material/info: {words.get(run.status, run.status)}: {done} of {len(run.points)} points are complete. "
            "What was measured is kept, and Continue measures the rest."
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


def _shown(run: Run, version: int) -> Shown:
    return Shown(
        latency=packed(base.revised(sweep_lines.frame(run, "latency"), run.id, version)),
        memory=packed(base.revised(sweep_lines.frame(run, "memory"), run.id, version)),
        latency_alt=sweep_lines.takeaway(run, "latency"),
        memory_alt=sweep_lines.takeaway(run, "memory"),
    )


def _lines(run: Run, version: int) -> None:
    shown = _memo.get((run.id, version, "lines"), lambda: _shown(run, version))
    axis, strategy_lines = run.axes[0], lines(run.points, run.axes)
    mappers, modes = [line.mapper for line in strategy_lines], [line.mode for line in strategy_lines]
    st.html(look.legend_html(mappers, modes, lines=True))
    st.markdown(f"**Latency** of one call over {look.plain(axis.name)}")
    if shown.latency.num_rows:
        drawn = sweep_lines.specification("latency", axis)
        st.vega_lite_chart(shown.latency, drawn, key="sweep_latency", alt=shown.latency_alt)
        st.caption(
            "Band: 95 % interval; ring: one overtakes another, with its interval; ✕: did not work, or was not run."
        )
    st.markdown(f"**Memory** of one call over {look.plain(axis.name)}")
    if shown.memory.num_rows:
        drawn = sweep_lines.specification("memory", axis)
        st.vega_lite_chart(shown.memory, drawn, key="sweep_memory", alt=shown.memory_alt)


def _crossovers(run: Run, finished: bool) -> None:
    crossings = [crossover for crossover in run.crossovers if crossover.value is not None]
    without = [crossover for crossover in run.crossovers if crossover.value is None]
    if not crossings and not (finished and (without or findings.measured(run))):
        return
    st.markdown("**Where one overtakes another**")
    with st.container(key="crossovers", gap="small"):
        if crossings:
            st.markdown("\n".join(f"- {look.plain(sentence(crossover))}" for crossover in crossings))
        elif not without:
            st.caption("One strategy leads throughout the range: nothing is overtaken.")
        if without:
            pairs = f"{len(without)} pair{'s' * (len(without) > 1)} of leading strategies without a crossing in range"
            with st.expander(pairs, type="compact", key="no_crossing", expanded=not crossings):
                st.caption("\n".join(f"- {look.plain(sentence(crossover))}" for crossover in without))


def _failures(run: Run) -> None:
    lists = {
        "Did not work": ("failures", failures.did_not_work(run)),
        "Not run": ("not_run", failures.not_run(run)),
    }
    for name, (key, rows) in lists.items():
        if not rows:
            continue
        st.markdown(f"**{name}** ({len(rows)})")
        with st.container(border=True, gap="small", key=key):
            for line, words in rows:
                st.html(
                    f"<div>{look.strategy_html(line.slug, line.mapper, line.mode)} "
                    f'<span style="overflow-wrap:anywhere;margin-left:.5em">{html.escape(words)}</span></div>'
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


def _map(run: Run, version: int) -> None:
    frame = _memo.get((run.id, version, "map"), lambda: packed(base.revised(sweep_map.frame(run), run.id, version)))
    across, up = run.axes
    st.markdown(f"**Who is fastest** at each {look.plain(across.name)} and {look.plain(up.name)}")
    st.html(sweep_map.legend_html(run))
    drawn = sweep_map.sized(sweep_map.specification(across.name, up.name), run)
    event = st.vega_lite_chart(
        frame, drawn, key="sweep_map", alt=sweep_map.takeaway(run), on_select="rerun",
        selection_mode=sweep_map.SELECTION,
    )  # fmt: skip
    _take_selection(run, event)
    measured = sum(bool(point.ranking) and not cells.inferred(point) for point in run.points)
    st.caption(
        f"{measured} of {len(run.points)} cells measured; pale: not measured, its neighbours agree; "
        "striped: a tie. A click on a cell shows its comparison below."
    )


def _take_selection(run: Run, event: Any) -> None:
    """Have a click choose the point, until another one is chosen by other means."""
    picked = [selected.get(sweep_map.SELECTION) for selected in event.selection.get(sweep_map.SELECTION, [])]
    clicked = next((point for point in run.points if picked and sweep_map.cell(run, point) == picked[0]), None)
    if clicked is not None and picked[0] != st.session_state.get("sweep_clicked"):
        st.session_state["sweep_clicked"] = picked[0]
        st.session_state[_POINT_CHOSEN] = (run.id, cells.place(clicked))


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
    chosen = _chosen_place(_FRONT_CHOSEN, run)
    st.session_state[_FRONT_AT] = chosen if chosen in offered else max(offered)
    picked = st.selectbox(
        "At", list(offered), key=_FRONT_AT, on_change=_choose, args=(_FRONT_CHOSEN, _FRONT_AT, run.id),
        format_func=lambda place: readable(run.points[offered[place]].at),
    )  # fmt: skip
    return offered[picked]


def _choose(chosen: str, widget: str, run_id: str) -> None:
    """Keep what is picked in a list for this run, wherever its points are by then."""
    st.session_state[chosen] = (run_id, st.session_state[widget])


def _chosen_place(chosen: str, run: Run) -> cells.Place | None:
    """Return what was picked for this run; a choice in another one says nothing about it."""
    run_id, place = st.session_state.get(chosen) or (None, None)
    return place if run_id == run.id else None


def _slider(run: Run, measurements: Sequence[Measurement]) -> int:
    """Draw the slider of the memory that there is, in bytes: beyond all that is needed, until it is moved; then as near
    to that as is offered."""
    offered = sweep_front.steps(measurements)
    chosen = st.session_state.get("memory_dial") if st.session_state.get("dial_chosen") == run.id else None
    st.session_state["memory_dial"] = min(max(chosen, offered[0]), offered[-1]) if chosen else offered[-1]
    return int(
        st.select_slider(
            "I have", offered, key="memory_dial", format_func=look.size, on_change=_chosen, args=("dial_chosen", run.id)
        )
    )


def _chosen(key: str, run_id: str) -> None:
    st.session_state[key] = run_id


# --- one point -------------------------------------------------------------------------------------------------------


def _point(run: Run, version: int, baseline: str | None, *, imported: bool) -> None:
    offered = {cells.place(point): point for point in run.points if point.status != "waiting"}
    if not offered:
        return
    chosen = _chosen_place(_POINT_CHOSEN, run)
    st.session_state[_POINT] = chosen if chosen in offered else None
    picked = st.selectbox(
        "Show the comparison at", list(offered), index=None, key=_POINT, placeholder="choose a point",
        on_change=_choose, args=(_POINT_CHOSEN, _POINT, run.id),
        format_func=lambda place: _named(offered[place]),
    )  # fmt: skip
    if picked is None:
        return
    point = offered[picked]
    comparison = point_run(run, point)
    with st.container(border=True, key="point", gap="small"):
        st.page_link(
            _COMPARE, label="Open these choices on the Compare page", icon=":material/compare_arrows:",
            query_params=_address(comparison),
        )  # fmt: skip
        if not point.measurements:
            st.caption(look.plain(look.sentence(f"{sweep_map.state(point)}")))
            return
        draw_comparison(
            comparison, version, finished=point.status not in ("waiting", "running"), baseline=baseline,
            prefix="point_", imported=imported,
        )  # fmt: skip


def _named(point: Point) -> str:
    return f"{readable(point.at)} ({sweep_map.state(point)})"


def _address(comparison: Run) -> dict[str, Any]:
    """Return the query parameters with which the Compare page makes a comparison's choices."""
    request = comparison.request
    parameters: dict[str, Any] = {"workload": request.workload, "dtype": request.dtype, "device": request.device}
    parameters |= {size_key(name): str(value) for name, value in request.size.items()}
    parameters |= {option_key(name): str(value) for name, value in request.workload_options.items()}
    return {**parameters, "strategies": list(request.strategies) or ["default"]}
