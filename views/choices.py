"""The left column: what is to be compared. Every choice lives in the address, by the widget's key."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import streamlit as st

import strategies
import workloads
from measure import environment, fit, forecast
from measure import request as requests
from measure.request import Request, RequestError
from strategies.spec import MODES
from views import look, picture
from views.link import AUTOMATIC, NONE, WORDS, option_key, size_key
from workloads.spec import Workload, leaves

_USUAL = ("loop.eager", "map_fn.graph", "vectorized_map.graph", "batched.graph")
# Within this factor of the least forecast peak a strategy counts as a memory saver.
_THRIFTY = 1.1


@dataclass(frozen=True)
class Choices:
    """What is chosen: a request, or the sentence why it is none. ``baseline`` is a slug, or None for automatic."""

    request: Request | None
    refusal: str | None
    baseline: str | None
    needs: forecast.RunForecast | None = None


def draw(devices: tuple[str, ...]) -> Choices:
    """Draw all choices but Run. ``devices`` is empty while the measuring process is starting."""
    workload = _workload()
    size = _sizes(workload)
    options = _options(workload)
    dtype, device = _dtype_and_device(workload, devices)
    # The list inside "Advanced" holds the chosen strategies, and the grid above it shows them: so it comes first.
    grid = st.container(key="strategies_box", gap="small")
    advanced, words = _advanced(workload)
    chosen, problem = _resolve(workload, size, dtype, options, words)
    with grid:
        _strategies(workload, size, dtype, options, chosen, words)
    return _judge(workload, size, dtype, device, options, chosen, problem, advanced)


def _workload() -> Workload:
    slugs = [each.slug for each in sorted(workloads.all(), key=lambda each: each.group)]
    slug = st.selectbox(
        "Workload", slugs, key="workload", bind="query-params", on_change=_workload_changed, index=_index(slugs)
    )
    return workloads.get(slug if slug in slugs else workloads.names()[0])


def _index(slugs: list[str]) -> int:
    return slugs.index(workloads.names()[0])


def _workload_changed() -> None:
    """A size of one workload says nothing about another: the new one starts with its own defaults."""
    workload = workloads.get(st.session_state["workload"])
    for parameter in workload.sizes:
        st.session_state[size_key(parameter.name)] = parameter.default
    for option in workload.options:
        st.session_state[option_key(option.name)] = option.default


def _set_size(workload: Workload) -> None:
    preset = workload.presets.get(st.session_state["size_preset"] or "")
    for name, value in ({**workload.default_size(), **preset} if preset else {}).items():
        st.session_state[size_key(name)] = value


def _sizes(workload: Workload) -> dict[str, int]:
    about = st.container(gap="xsmall", key="about_workload")
    presets = st.container(key="size_presets")
    size = {}
    with st.grid(2, min_column_width=110, gap="small", key="sizes"):
        for parameter in workload.sizes:
            value = st.number_input(
                parameter.name,
                min_value=parameter.least,
                max_value=parameter.most,
                value=parameter.default,
                step=1,
                key=size_key(parameter.name),
                help=f"{parameter.help}; from {parameter.least:,} to {parameter.most:,}",
                bind="query-params",
            )
            size[parameter.name] = int(value)
    with presets:
        fitting = [name for name, preset in workload.presets.items() if {**workload.default_size(), **preset} == size]
        st.session_state["size_preset"] = fitting[0] if fitting else None
        st.pills(
            "Sizes", list(workload.presets), key="size_preset", on_change=_set_size, args=(workload,),
            label_visibility="collapsed",
        )  # fmt: skip
    with about:
        st.caption(
            f"**{look.plain(workload.title)}** · {look.plain(workload.group)} · {look.plain(workload.formula)}",
            help=look.plain(workload.summary),
        )
        st.html(_picture(workload, size))
    return size


def _picture(workload: Workload, size: dict[str, int]) -> str:
    dtype = st.session_state.get("dtype") or workload.dtypes[0]
    dtype = dtype if dtype in workload.dtypes else workload.dtypes[0]
    inputs = leaves(workload.call(workload.element_input, size, dtype))
    outputs = leaves(workload.call(workload.element_output, size, dtype))
    return picture.shapes(size["batch"], inputs, outputs)


def _options(workload: Workload) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    for option in workload.options:
        if option.values is not None:
            texts = [str(value) for value in option.values]
            picked = st.selectbox(
                option.name, texts, index=texts.index(str(option.default)), key=option_key(option.name),
                help=option.help, bind="query-params",
            )  # fmt: skip
            chosen[option.name] = option.parse(picked)
        else:
            chosen[option.name] = int(
                st.number_input(
                    option.name, min_value=option.least, max_value=option.most, value=int(option.default), step=1,
                    key=option_key(option.name), help=option.help, bind="query-params",
                )
            )  # fmt: skip
    return chosen


def _dtype_and_device(workload: Workload, devices: tuple[str, ...]) -> tuple[str, str]:
    # Until the host has told what there is, a device named by a link is taken at its word.
    asked = st.session_state.get("device") or _asked_device()
    offered = list(dict.fromkeys(("CPU:0", *devices, *(() if devices or not asked else (asked,)))))
    left, right = st.columns(2, wrap=False)
    dtype = left.selectbox("dtype", list(workload.dtypes), key="dtype", bind="query-params")
    device = right.selectbox(
        "device", offered, key="device", bind="query-params",
        help="Found by the measuring process; a GPU is listed where TensorFlow sees one.",
    )  # fmt: skip
    return dtype, device


def _asked_device() -> str | None:
    try:
        return requests.parse_device(st.query_params["device"])
    except (KeyError, RequestError):
        return None


def _advanced(workload: Workload) -> tuple[dict[str, Any], list[str]]:
    """The rarely changed choices, and the words of the list of strategies."""
    everything = [strategy.slug for strategy in strategies.all_strategies(workload)]
    with st.expander("Advanced", icon=":material/tune:", key="advanced"):
        words = st.multiselect(
            "Strategies as a list", [*WORDS, NONE, *everything], default=[WORDS[0]], key="strategies",
            accept_new_options=True, bind="query-params", select_all=False,
            help="The grid above, as text. A strategy's own options can be typed: mapper.mode?option=value",
        )  # fmt: skip
        with st.grid(2, min_column_width=130, gap="small"):
            budget = st.number_input(
                "Time budget (s)", min_value=1.0, max_value=requests.MOST_BUDGET_S, value=requests.DEFAULT_BUDGET_S,
                step=10.0, format="%g", key="budget", bind="query-params",
                help="Sampling ends at the latest after this time, decided or not.",
            )  # fmt: skip
            limit = st.number_input(
                "Memory limit (MiB)", min_value=1, max_value=2**24, value=None, step=256, key="memory_limit",
                placeholder="none", bind="query-params",
                help="What needs more than this fails cleanly as out of memory.",
            )  # fmt: skip
            threads = st.number_input(
                "Threads", min_value=1, max_value=requests.MOST_THREADS, value=None, step=1, key="threads",
                placeholder="TensorFlow's choice", bind="query-params", help="Of TensorFlow's thread pools.",
            )  # fmt: skip
            seed = st.number_input(
                "Seed", min_value=0, max_value=requests.MOST_SEED, value=0, step=1, key="seed", bind="query-params",
                help="Of the inputs' random numbers.",
            )  # fmt: skip
        # Chosen in a result, it may be a strategy that is no cell of this workload's grid.
        asked = st.session_state.get("baseline") or AUTOMATIC
        baseline = st.selectbox(
            "Baseline", list(dict.fromkeys((AUTOMATIC, *everything, asked))), key="baseline", bind="query-params",
            help="What «× faster than» refers to; auto: loop.eager where it is timed, else the slowest.",
        )  # fmt: skip
    advanced = {"budget_s": budget, "memory_limit_mib": limit, "threads": threads, "seed": seed, "baseline": baseline}
    return advanced, list(words)


def _resolve(
    workload: Workload, size: dict[str, int], dtype: str, options: dict[str, Any], words: list[str]
) -> tuple[tuple[str, ...], str | None]:
    """The chosen slugs, and what is wrong with the list."""
    words = [word for word in words if word != NONE] if len(words) > 1 else words
    if words == [NONE]:
        return (), "Choose at least one strategy."
    good: list[str] = []
    problem = None
    for word in words or [WORDS[0]]:
        try:
            good += requests.parse_strategies(workload, size, dtype, options, [word])
        except RequestError as error:
            problem = str(error)
    return tuple(dict.fromkeys(good)), problem


def _preset_sets(
    workload: Workload, size: dict[str, int], dtype: str, options: dict[str, Any]
) -> dict[str, tuple[list[str], tuple[str, ...]]]:
    """Name → (words for the list, slugs that they stand for)."""
    everything = tuple(strategy.slug for strategy in strategies.all_strategies(workload))
    peaks = {slug: forecast.forecast(workload, size, dtype, slug, options).peak_bytes for slug in everything}
    default = tuple(requests.default_strategies(workload, size, dtype, options))
    usual = tuple(slug for slug in everything if slug in _USUAL)
    savers = tuple(slug for slug in default if peaks[slug] <= _THRIFTY * min(peaks.values()))
    return {
        "Default": (["default"], default),
        "The usual four": (list(usual), usual),
        "Everything in graph mode": (["graph"], tuple(slug for slug in everything if slug.endswith(".graph"))),
        "Memory savers": (list(savers), savers),
        "All": (["all"], everything),
    }


def _choose(words: Iterable[str]) -> None:
    st.session_state["strategies"] = list(words) or [NONE]


def _toggle(chosen: tuple[str, ...], group: tuple[str, ...], everything: tuple[str, ...]) -> None:
    """All of the group are chosen, or, where they are already, none of it."""
    left = [slug for slug in chosen if slug not in group]
    wanted = left if set(group) <= set(chosen) else [*left, *group]
    _choose(sorted(wanted, key=lambda slug: everything.index(slug) if slug in everything else len(everything)))


def _use_preset(presets: dict[str, tuple[list[str], tuple[str, ...]]]) -> None:
    picked = st.session_state["strategy_preset"]
    if picked:
        _choose(presets[picked][0])


def _strategies(
    workload: Workload,
    size: dict[str, int],
    dtype: str,
    options: dict[str, Any],
    chosen: tuple[str, ...],
    words: list[str],
) -> None:
    offered = [mapper for mapper in strategies.mappers() if strategies.offered(mapper, workload)]
    everything = tuple(strategy.slug for strategy in strategies.all_strategies(workload))
    presets = _preset_sets(workload, size, dtype, options)
    same = [name for name, (_, slugs) in presets.items() if set(slugs) == set(chosen)]
    st.session_state["strategy_preset"] = same[0] if same else None
    st.pills(
        "Strategies", list(presets), key="strategy_preset", on_change=_use_preset, args=(presets,),
        help="How the function is mapped (rows), and how that runs (columns). "
        "The name of a row or a column chooses all of it.",
    )  # fmt: skip
    with st.grid(
        5, min_column_width=40, wrap=False, gap=None, vertical_alignment="center", key="strategies_grid"
    ) as grid:
        with grid.cell(column_span=2):
            st.caption(f"{len(chosen)} chosen")
        for mode in MODES:
            group = tuple(slug for slug in everything if slug.endswith(f".{mode}"))
            st.button(
                f"{look.glyph(mode)} {mode}", key=look.key("column", mode), type="tertiary", width="stretch",
                on_click=_toggle, args=(chosen, group, everything), wrap=False,
            )  # fmt: skip
        for mapper in offered:
            group = tuple(f"{mapper.slug}.{mode}" for mode in mapper.modes)
            with grid.cell(column_span=2):
                st.button(
                    mapper.slug, key=look.key("row", mapper.slug), type="tertiary", on_click=_toggle,
                    args=(chosen, group, everything), help=look.plain(mapper.summary), wrap=False,
                )  # fmt: skip
            for mode in MODES:
                slug = f"{mapper.slug}.{mode}"
                if mode not in mapper.modes:
                    grid.cell()
                    continue
                key = look.key("cell", mapper.slug, mode)
                st.session_state[key] = slug in chosen
                st.checkbox(
                    slug, key=key, on_change=_toggle, args=(chosen, (slug,), everything), label_visibility="collapsed"
                )
    typed = [slug for slug in chosen if slug not in everything]
    if typed:
        st.caption(f"and, from the list under Advanced: {look.plain(', '.join(typed))}")


def _judge(
    workload: Workload,
    size: dict[str, int],
    dtype: str,
    device: str,
    options: dict[str, Any],
    chosen: tuple[str, ...],
    problem: str | None,
    advanced: dict[str, Any],
) -> Choices:
    """The request that the choices make, whether it can fit, and what it will need."""
    baseline = None if advanced["baseline"] == AUTOMATIC else advanced["baseline"]
    if problem or not chosen:
        return Choices(None, problem or "Choose at least one strategy.", baseline)
    try:
        request = requests.parse(
            {
                "workload": workload.slug,
                "workload_options": options,
                "size": size,
                "dtype": dtype,
                "device": device,
                "strategies": list(chosen),
                "budget_s": advanced["budget_s"],
                "memory_limit_mib": advanced["memory_limit_mib"],
                "threads": advanced["threads"],
                "seed": advanced["seed"],
            }
        )
    except RequestError as error:
        return Choices(None, str(error), baseline)
    needs = forecast.forecast_run(workload, size, dtype, chosen, options, request.budget_s)
    refusal = fit.check(request, environment.available_memory())
    return Choices(request, refusal, baseline, needs)
