"""The grid of strategies, mappers × modes: one click chooses a cell, a row, a column or a preset.

Mappers that the default selection has no strategy of stay folded away until one of them is chosen, or asked for.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

import strategies
from measure.run import forecast
from measure.run.request import RequestError, default_strategies, parse_strategies
from strategies.spec import ELEMENT, MODES, Mapper
from views.choices import texts
from views.choices.address import NONE, WORDS
from views.ui import look
from views.ui.memo import Memo
from workloads.case import Case
from workloads.spec import Workload

if TYPE_CHECKING:
    from streamlit.elements.lib.grid_container import GridContainer

_USUAL = ("loop.eager", "map_fn.graph", "vectorized_map.graph", "batched.graph")
# Within this factor of the least forecast peak a strategy counts as a memory saver; and so do the best few at any rate,
# one alone would be no comparison.
_THRIFTY, _FEWEST_SAVERS = 1.1, 3
_memo = Memo(__name__)
# Name → (words for the list of strategies, slugs that they stand for).
Presets = dict[str, tuple[list[str], tuple[str, ...]]]


def resolve(case: Case, presets: Presets, words: list[str]) -> tuple[tuple[str, ...], str | None]:
    """Return the chosen slugs, and what is wrong with the list."""
    words = [word for word in words if word != NONE] if len(words) > 1 else words
    if words == [NONE]:
        return (), texts.NONE_CHOSEN
    good: list[str] = []
    problems = []
    for word in words or [WORDS[0]]:
        if word == WORDS[0]:
            good += presets[texts.PRESET_DEFAULT][1]
            if not presets[texts.PRESET_DEFAULT][1]:
                problems.append(texts.NO_DEFAULT)
            continue
        try:
            good += parse_strategies(case, [word])
        except RequestError as error:
            problems.append(look.sentence(str(error)))
    return tuple(dict.fromkeys(good)), " ".join(problems) or None


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
    savers = tuple(
        slug
        for slug in default
        if forecasts[slug].peak_bytes <= _THRIFTY * least or slug in thriftiest[:_FEWEST_SAVERS]
    )
    return {
        texts.PRESET_DEFAULT: ([WORDS[0]], default),
        texts.PRESET_USUAL: (usual(case.workload), tuple(usual(case.workload))),
        texts.PRESET_GRAPH: (
            ["graph"],
            tuple(strategy.slug for strategy in offered if strategy.mode == "graph"),
        ),
        texts.PRESET_SAVERS: (list(savers), savers),
        texts.PRESET_ALL: (["all"], everything),
    }


def _choose(words: Iterable[str]) -> None:
    st.session_state["strategies"] = list(words) or [NONE]


def _toggle(chosen: tuple[str, ...], group: tuple[str, ...], everything: tuple[str, ...]) -> None:
    """Choose all of the group, or, where all are chosen already, none of it."""
    left = [slug for slug in chosen if slug not in group]
    wanted = left if set(group) <= set(chosen) else [*left, *group]
    _choose(sorted(wanted, key=lambda slug: everything.index(slug) if slug in everything else len(everything)))


def _use_preset(presets: Presets) -> None:
    picked = st.session_state["strategy_preset"]
    if picked:
        _choose(presets[picked][0])


def draw(case: Case, presets: Presets, chosen: tuple[str, ...]) -> None:
    offered = [mapper for mapper in strategies.mappers() if strategies.offered(mapper, case.workload)]
    by_slug = {strategy.slug: strategy for strategy in strategies.all_strategies(case.workload)}
    everything = tuple(by_slug)
    same = [name for name, (_, slugs) in presets.items() if set(slugs) == set(chosen)]
    st.session_state["strategy_preset"] = same[0] if same else None
    st.pills(
        texts.STRATEGIES, list(presets), key="strategy_preset", on_change=_use_preset, args=(presets,),
        help=texts.STRATEGIES_HELP,
    )  # fmt: skip
    with st.grid(
        2 * len(MODES), min_column_width=40, wrap=False, gap=None, vertical_alignment="center", key="strategies_grid"
    ) as grid:
        with grid.cell(column_span=len(MODES)):
            st.caption(texts.CHOSEN.format(count=len(chosen)))
        for mode in MODES:
            group = tuple(slug for slug, strategy in by_slug.items() if strategy.mode == mode)
            st.button(
                f"{look.glyph(mode)} {mode}", key=look.key("column", mode), type="tertiary", width="stretch",
                on_click=_toggle, args=(chosen, group, everything), wrap=False,
            )  # fmt: skip
        for row in _rows([mapper for mapper in offered if mapper.default_modes], case.workload):
            _draw_row(grid, row, chosen, everything)
        more = [mapper for mapper in offered if not mapper.default_modes]
        rows = _rows(more, case.workload)
        if more and _unfolded(grid, len(more), [slug for row in rows for slug in row.by_mode.values()], chosen):
            for row in rows:
                _draw_row(grid, row, chosen, everything)
    typed = [slug for slug in chosen if slug not in everything]
    if typed:
        st.caption(texts.TYPED.format(strategies=look.plain(", ".join(typed))))


@dataclass(frozen=True)
class _Row:
    """A mapper of one of the workload's element functions: what it is called, and its strategy in each of its modes."""

    label: str
    help: str
    key: tuple[str, ...]
    by_mode: Mapping[str, str]


def _rows(mappers: Iterable[Mapper], workload: Workload) -> list[_Row]:
    rows = []
    for mapper in mappers:
        offered = strategies.of_mapper(mapper, workload)
        for element in dict.fromkeys(strategy.element for strategy in offered):
            by_mode = {strategy.mode: strategy.slug for strategy in offered if strategy.element == element}
            if element is None:
                rows.append(_Row(mapper.slug, mapper.summary, (mapper.slug,), by_mode))
            else:
                words = texts.OTHER_ELEMENT.format(mapper=mapper.slug, element=element)
                rows.append(_Row(f"↳ {element}", words, (mapper.slug, ELEMENT, element), by_mode))
    return rows


def _draw_row(grid: "GridContainer", row: _Row, chosen: tuple[str, ...], everything: tuple[str, ...]) -> None:
    with grid.cell(column_span=len(MODES)):
        st.button(
            row.label, key=look.key("row", *row.key), type="tertiary", on_click=_toggle,
            args=(chosen, tuple(row.by_mode.values()), everything), help=look.plain(row.help), wrap=False,
        )  # fmt: skip
    for mode in MODES:
        if mode not in row.by_mode:
            grid.cell()
            continue
        slug, key = row.by_mode[mode], look.key("cell", *row.key, mode)
        st.session_state[key] = slug in chosen
        st.checkbox(slug, key=key, on_change=_toggle, args=(chosen, (slug,), everything), label_visibility="collapsed")


def _unfolded(grid: "GridContainer", mappers: int, slugs: Iterable[str], chosen: tuple[str, ...]) -> bool:
    """Draw the button that unfolds the further mappers, of which there are so many. Return True if they are shown: as
    was asked for last, or because the first of their cells was chosen."""
    count = len({*slugs} & {*chosen})
    if count and not st.session_state.get("more_chosen"):
        st.session_state["more_shown"] = True
    st.session_state["more_chosen"] = count
    shown = bool(st.session_state.get("more_shown"))
    words = texts.FURTHER.format(count=mappers) if mappers > 1 else texts.ONE_FURTHER
    if count and not shown:
        words += f", {texts.CHOSEN.format(count=count)}"
    with grid.cell(column_span=2 * len(MODES)):
        st.button(
            f"{'▾' if shown else '▸'} {words}", key="more", type="tertiary", on_click=_fold, args=(not shown,),
            wrap=False, help=texts.FURTHER_HELP,
        )  # fmt: skip
    return shown


def _fold(shown: bool) -> None:
    st.session_state["more_shown"] = shown
