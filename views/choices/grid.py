"""The grid of strategies, mappers × modes: one click chooses a cell, a row, a column or a preset.

Mappers that the default selection has no strategy of stay folded away until one of them is chosen, or asked for.
"""

from collections.abc import Iterable

import streamlit as st

import strategies
from measure.run import forecast
from measure.run.request import RequestError, default_strategies, parse_strategies
from strategies.spec import ELEMENT, MODES
from views.ui import look
from views.ui.memo import Memo
from workloads.case import Case
from workloads.spec import Workload

WORDS = ("default", "all")
# In the list of strategies: nothing is chosen. An empty list is the default.
NONE = "none"
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
_MOST_PROBLEMS = 5
# Name → the slugs that it stands for.
Presets = dict[str, tuple[str, ...]]


def usual(workload: Workload) -> list[str]:
    """Return the best known mappers, each in the mode that most people use."""
    return [strategy.slug for strategy in strategies.all_strategies(workload) if strategy.slug in _USUAL]


def presets_of(case: Case) -> Presets:
    """Return the presets; forecasts decide what «default» and «memory savers» are, so they are kept for a case."""
    sizes_and_options = (*case.size.values(), *case.options.values())
    key = (strategies.version(), case.workload.slug, *sizes_and_options, case.dtype, case.device)
    return _memo.get(key, lambda: _presets_of(case))


def _presets_of(case: Case) -> Presets:
    offered, default = strategies.all_strategies(case.workload), default_strategies(case)
    forecasts = {slug: forecast.estimate(case, slug) for slug in default}
    thriftiest = sorted(default, key=lambda slug: (forecasts[slug].peak_bytes, forecasts[slug].latency_s))
    enough_bytes = _THRIFTY * forecasts[thriftiest[0]].peak_bytes
    savers = {*thriftiest[:_FEWEST_SAVERS], *(slug for slug in default if forecasts[slug].peak_bytes <= enough_bytes)}
    return {
        "Default": tuple(default),
        "The usual four": tuple(usual(case.workload)),
        "Memory savers": tuple(slug for slug in default if slug in savers),
        "All": tuple(strategy.slug for strategy in offered),
    }


def resolve(case: Case, presets: Presets, words: list[str]) -> tuple[tuple[str, ...], str | None]:
    """Return the slugs that the list of strategies stands for, and what is wrong with it."""
    if words == [NONE]:
        return (), "Choose at least one strategy."
    of_word: Presets = {slug: (slug,) for slug in presets["All"]}
    of_word |= {word: presets[word.title()] for word in WORDS}
    chosen, problems = list[str](), list[str]()
    for word in [word for word in words if word != NONE] or [WORDS[0]]:
        try:
            chosen += of_word.get(word) or parse_strategies(case, [word])
        except RequestError as error:
            problems.append(f"«{word}» cannot be chosen: {error}.")
    if len(problems) > _MOST_PROBLEMS:
        problems[_MOST_PROBLEMS:] = [f"And {len(problems) - _MOST_PROBLEMS:,} more cannot."]
    return tuple(dict.fromkeys(chosen)), " ".join(problems) or None


def draw(workload: Workload, presets: Presets, chosen: tuple[str, ...]) -> None:
    """Draw the presets and the grid, in which what is chosen is ticked; a click sets the list of strategies."""
    state, everything = st.session_state, presets["All"]

    def choose(words: Iterable[str]) -> None:
        state["strategies"] = list(words) or [NONE]

    def toggle(*group: str) -> None:
        wanted = {*chosen} - {*group} if {*group} <= {*chosen} else {*chosen, *group}
        choose([*(slug for slug in everything if slug in wanted), *sorted(wanted - {*everything})])

    def use_preset() -> None:
        if name := state["strategy_preset"]:
            choose([name.lower()] if name.lower() in WORDS else presets[name])

    state["strategy_preset"] = next((name for name, slugs in presets.items() if {*slugs} == {*chosen}), None)
    st.pills(
        "Strategies", list(presets), key="strategy_preset", on_change=use_preset,
        help="How the function is mapped (rows), and how that runs (columns). The name of a row or a column chooses "
        "all of it.",
    )  # fmt: skip

    def draw_row(mapper: str, element: str | None, modes: dict[str, str]) -> None:
        """Draw the strategies of a mapper, or of another way to write the element function under it."""
        label, about, key = mapper, mappers[mapper].summary, [mapper]
        if element is not None:
            label, about = f"↳ {element}", f"{mapper} of the element function as {element} writes it"
            key += [ELEMENT, element]
        with grid.cell(column_span=len(MODES)):
            st.button(
                label, key=look.key("row", *key), type="tertiary", on_click=toggle, args=list(modes.values()),
                help=look.plain(about), wrap=False,
            )  # fmt: skip
        for mode in MODES:
            if slug := modes.get(mode):
                state[cell := look.key("cell", *key, mode)] = slug in chosen
                st.checkbox(slug, key=cell, on_change=toggle, args=[slug], label_visibility="collapsed")
            else:
                grid.cell()

    # Mapper and element function → the strategy in each mode.
    mappers = {mapper.slug: mapper for mapper in strategies.mappers()}
    rows: dict[tuple[str, str | None], dict[str, str]] = {}
    for strategy in strategies.all_strategies(workload):
        rows.setdefault((strategy.mapper, strategy.element), {})[strategy.mode] = strategy.slug
    further = {row: modes for row, modes in rows.items() if not mappers[row[0]].default_modes}
    with st.grid(
        2 * len(MODES), min_column_width=40, wrap=False, gap=None, vertical_alignment="center", key="strategies_grid"
    ) as grid:
        with grid.cell(column_span=len(MODES)):
            st.caption(f"{len(chosen)} chosen")
        for mode in MODES:
            st.button(
                f"{look.glyph(mode)} {mode}", key=look.key("column", mode), type="tertiary", width="stretch",
                on_click=toggle, args=[modes[mode] for modes in rows.values() if mode in modes], wrap=False,
                help=_MODES[mode],
            )  # fmt: skip
        for row, modes in rows.items():
            if row not in further:
                draw_row(*row, modes)
        shown = is_used = any(slug in chosen for modes in further.values() for slug in modes.values())
        if further and not is_used:  # what is chosen is not folded away
            shown = state.get("more_shown", False)
            count = len({mapper for mapper, _ in further})
            with grid.cell(column_span=2 * len(MODES)):
                st.button(
                    f"{'▾' if shown else '▸'} {count} more mapper{'s' * (count > 1)}", key="more", type="tertiary",
                    on_click=state.update, args=[{"more_shown": not shown}], wrap=False,
                    help="«Default» leaves these out, «All» takes them.",
                )  # fmt: skip
        for row, modes in further.items() if shown else ():
            draw_row(*row, modes)
    if typed := [slug for slug in chosen if slug not in everything]:
        st.caption(f"and, from the list under Advanced: {look.plain(', '.join(typed))}")
