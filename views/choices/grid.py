"""The grid of strategies, mappers × modes: one click chooses a cell, a row, a column or a preset.

Mappers that the default selection has no strategy of stay folded away until one of them is chosen, or asked for.
"""

from collections.abc import Iterable

import streamlit as st

import strategies
from measure.run import forecast
from measure.run.request import RequestError, default_strategies, parse_strategies
from strategies.spec import ELEMENT, MODES
from views.choices.address import NONE, WORDS
from views.ui import look
from views.ui.memo import Memo
from workloads.case import Case
from workloads.spec import Workload

NONE_CHOSEN = "Choose at least one strategy."
_USUAL = ("loop.eager", "map_fn.graph", "vectorized_map.graph", "batched.graph")
# Within this factor of the least forecast peak a strategy counts as a memory saver; and so do the best few at any rate,
# one alone would be no comparison.
_THRIFTY, _FEWEST_SAVERS = 1.1, 3
_MODES = {
    "eager": "Eager: Python runs op after op, each with its own dispatch. Nothing is compiled.",
    "graph": "Graph: inside a tf.function. Traced at the first call; then the runtime runs all ops without Python.",
    "xla": "XLA: a tf.function with jit_compile=True. Compiled at the first call, with ops fused where that can be.",
}
_memo = Memo(__name__)
# Name → (words for the list of strategies, slugs that they stand for).
Presets = dict[str, tuple[list[str], tuple[str, ...]]]


def resolve(case: Case, presets: Presets, words: list[str]) -> tuple[tuple[str, ...], str | None]:
    """Return the chosen slugs, and what is wrong with the list."""
    if words == [NONE]:
        return (), NONE_CHOSEN
    chosen: list[str] = []
    problems = []
    for word in [word for word in words if word != NONE] or [WORDS[0]]:
        try:
            default = presets["Default"][1]
            if word == WORDS[0] and not default:
                raise RequestError("at this size no strategy is forecast to finish in reasonable time: make it smaller")
            chosen += default if word == WORDS[0] else parse_strategies(case, [word])
        except RequestError as error:
            problems.append(look.sentence(str(error)))
    return tuple(dict.fromkeys(chosen)), " ".join(problems) or None


def usual(workload: Workload) -> list[str]:
    """Return the best known mappers, each in the mode that most people use."""
    return [strategy.slug for strategy in strategies.all_strategies(workload) if strategy.slug in _USUAL]


def presets_of(case: Case) -> Presets:
    """Return the presets; forecasts decide what «default» and «memory savers» are, so they are kept for a case."""
    key = (
        strategies.version(), case.workload.slug, *case.size.values(), case.dtype, *case.options.values(), case.device
    )  # fmt: skip
    return _memo.get(key, lambda: _presets_of(case))


def _presets_of(case: Case) -> Presets:
    offered = strategies.all_strategies(case.workload)
    everything = tuple(strategy.slug for strategy in offered)
    forecasts = {slug: forecast.estimate(case, slug) for slug in everything}
    least = min(estimate.peak_bytes for estimate in forecasts.values())
    default = tuple(default_strategies(case))
    thriftiest = sorted(default, key=lambda slug: (forecasts[slug].peak_bytes, forecasts[slug].latency_s))
    thriftiest = thriftiest[:_FEWEST_SAVERS]
    savers = [slug for slug in default if forecasts[slug].peak_bytes <= _THRIFTY * least or slug in thriftiest]
    return {
        "Default": ([WORDS[0]], default),
        "The usual four": (usual(case.workload), tuple(usual(case.workload))),
        "Everything in graph mode": (["graph"], tuple(one.slug for one in offered if one.mode == "graph")),
        "Memory savers": (savers, tuple(savers)),
        "All": (["all"], everything),
    }


def draw(case: Case, presets: Presets, chosen: tuple[str, ...]) -> None:
    """Draw the presets and the grid, in which what is chosen is ticked; a click sets the list of strategies."""
    by_slug = {strategy.slug: strategy for strategy in strategies.all_strategies(case.workload)}
    order = {slug: place for place, slug in enumerate(by_slug)}

    def choose(words: Iterable[str]) -> None:
        st.session_state["strategies"] = list(words) or [NONE]

    def toggle(*group: str) -> None:
        """Choose all of the group, or, where all are chosen already, none of it."""
        others = {*chosen} - {*group}
        wanted = others if {*group} <= {*chosen} else {*chosen, *group}
        choose(sorted(wanted, key=lambda slug: (order.get(slug, len(order)), slug)))

    def use_preset() -> None:
        if picked := st.session_state["strategy_preset"]:
            choose(presets[picked][0])

    same = [name for name, (_, slugs) in presets.items() if set(slugs) == set(chosen)]
    st.session_state["strategy_preset"] = same[0] if same else None
    st.pills(
        "Strategies", list(presets), key="strategy_preset", on_change=use_preset,
        help="How the function is mapped (rows), and how that runs (columns). The name of a row or a column chooses "
        "all of it.",
    )  # fmt: skip

    def draw_row(label: str, about: str, key: tuple[str, ...], modes: dict[str, str]) -> None:
        with grid.cell(column_span=len(MODES)):
            st.button(
                label, key=look.key("row", *key), type="tertiary", on_click=toggle, args=list(modes.values()),
                help=look.plain(about), wrap=False,
            )  # fmt: skip
        for mode in MODES:
            if mode not in modes:
                grid.cell()
                continue
            cell = look.key("cell", *key, mode)
            st.session_state[cell] = modes[mode] in chosen
            st.checkbox(modes[mode], key=cell, on_change=toggle, args=[modes[mode]], label_visibility="collapsed")

    # The mapper's name or its element's, the hint on it, its key, and its strategy in each of its modes.
    rows: dict[bool, list[tuple[str, str, tuple[str, ...], dict[str, str]]]] = {True: [], False: []}
    for mapper in strategies.mappers():
        offered = strategies.of_mapper(mapper, case.workload) if strategies.offered(mapper, case.workload) else []
        for element in dict.fromkeys(strategy.element for strategy in offered):
            modes = {strategy.mode: strategy.slug for strategy in offered if strategy.element == element}
            group = rows[bool(mapper.default_modes)]
            if element is None:
                group.append((mapper.slug, mapper.summary, (mapper.slug,), modes))
            else:
                about = f"{mapper.slug} of the element function as {element} writes it"
                group.append((f"↳ {element}", about, (mapper.slug, ELEMENT, element), modes))
    with st.grid(
        2 * len(MODES), min_column_width=40, wrap=False, gap=None, vertical_alignment="center", key="strategies_grid"
    ) as grid:
        with grid.cell(column_span=len(MODES)):
            st.caption(f"{len(chosen)} chosen")
        for mode in MODES:
            st.button(
                f"{look.glyph(mode)} {mode}", key=look.key("column", mode), type="tertiary", width="stretch",
                on_click=toggle, args=[slug for slug, strategy in by_slug.items() if strategy.mode == mode],
                wrap=False, help=_MODES[mode],
            )  # fmt: skip
        for row in rows[True]:
            draw_row(*row)
        further = {slug for *_, modes in rows[False] for slug in modes.values()}
        shown = is_used = bool(further & {*chosen})
        if further and not is_used:  # what is chosen is not folded away
            shown = st.session_state.get("more_shown", False)
            count = len({key[0] for _, _, key, _ in rows[False]})
            with grid.cell(column_span=2 * len(MODES)):
                st.button(
                    f"{'▾' if shown else '▸'} {count} more mapper{'s' * (count > 1)}", key="more", type="tertiary",
                    on_click=st.session_state.update, args=[{"more_shown": not shown}], wrap=False,
                    help="«Default» leaves these out, «All» takes them.",
                )  # fmt: skip
        for row in rows[False] if shown else []:
            draw_row(*row)
    if typed := [slug for slug in chosen if slug not in by_slug]:
        st.caption(f"and, from the list under Advanced: {look.plain(', '.join(typed))}")
