"""The left column: what is to be compared. Every choice lives in the address, by the widget's key."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

import strategies
import workloads
from measure.machine import environment
from measure.model import fit, forecast
from measure.model import request as requests
from measure.model.request import Request, RequestError
from views.choices import grid, picture
from views.choices.address import AUTOMATIC, NONE, WORDS, option_key, size_key
from views.ui import look
from workloads.case import Case
from workloads.spec import Workload


@dataclass(frozen=True)
class Choices:
    """What is chosen: a request, or the sentence why it is none. ``baseline`` is a slug, or None for automatic."""

    request: Request | None
    refusal: str | None
    baseline: str | None
    needs: forecast.RunForecast | None = None


def draw(devices: tuple[str, ...]) -> Choices:
    """Draw all choices but Run. ``devices`` is empty while the measuring process is starting."""
    workload = choose_workload(start_with_defaults)
    size = sizes(workload)
    options = workload_options(workload)
    dtype, device = dtype_and_device(workload, devices)
    case = Case(workload, size, dtype, options, device)
    chosen, problem, advanced = strategies_and_advanced(case)
    return _judge(case, chosen, problem, advanced)


def strategies_and_advanced(
    case: Case, words: Sequence[str] = (WORDS[0],), budget_s: float = requests.DEFAULT_BUDGET_S
) -> tuple[tuple[str, ...], str | None, dict[str, Any]]:
    """The chosen slugs, what is wrong with them, and the rarely changed choices. ``words``: chosen at first."""
    # The list inside "Advanced" holds the chosen strategies, and the grid above it shows them: so it comes first.
    box = st.container(key="strategies_box", gap="small")
    advanced, listed = _advanced(case.workload, words, budget_s)
    presets = grid.presets_of(case)
    chosen, problem = grid.resolve(case, presets, listed)
    with box:
        grid.draw(case, presets, chosen)
    return chosen, problem, advanced


def choose_workload(changed: Callable[[], None]) -> Workload:
    """``changed`` is called when another one is chosen."""
    found = {each.slug: each for each in workloads.all()}
    groups = list(dict.fromkeys(each.group for each in found.values()))
    slugs = sorted(found, key=lambda slug: groups.index(found[slug].group))
    for path, message in {**workloads.broken(), **strategies.broken()}.items():
        st.warning(look.plain(Path(path).name + message.removeprefix(path)), icon=":material/broken_image:")
    # Kept in the address by hand: a widget bound to it would write its labels there.
    asked = st.query_params.get("workload")
    slug = asked if asked in found else workloads.names()[0]
    if asked is not None and asked != slug:
        del st.query_params["workload"]
    st.session_state["workload"] = slug
    st.selectbox(
        "Workload", slugs, key="workload", on_change=changed,
        format_func=lambda slug: f"{found[slug].group} · {slug}",
    )  # fmt: skip
    return found[slug]


def start_with_defaults() -> None:
    """A size of one workload says nothing about another: the new one starts with its own defaults."""
    workload = workloads.get(st.session_state["workload"])
    address_workload(workload.slug)
    for parameter in workload.sizes:
        st.session_state[size_key(parameter.name)] = parameter.default
    for option in workload.options:
        st.session_state[option_key(option.name)] = option.default


def address_workload(slug: str) -> None:
    """Put a workload into the address; the default is left out, as it is of what is bound to the address."""
    if slug == workloads.names()[0]:
        st.query_params.pop("workload", None)
    else:
        st.query_params["workload"] = slug


def _set_size(workload: Workload) -> None:
    preset = workload.presets.get(st.session_state["size_preset"] or "")
    for name, value in ({**workload.default_size(), **preset} if preset else {}).items():
        st.session_state[size_key(name)] = value


def sizes(workload: Workload, swept: Collection[str] = ()) -> dict[str, int]:
    """All sizes; those that are ``swept`` have no field here, and are at their defaults."""
    about = st.container(gap="xsmall", key="about_workload")
    presets = st.container(key="size_presets")
    size = workload.default_size()
    with st.grid(2, min_column_width=110, gap="small", key="sizes"):
        for parameter in (each for each in workload.sizes if each.name not in swept):
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
    if not swept:
        with presets:
            _size_presets(workload, size)
    with about:
        st.caption(
            f"**{look.plain(workload.title)}** · {look.plain(workload.formula)}",
            help=look.plain(workload.summary),
        )
        if not swept:
            st.html(_picture(workload, size))
    return size


def _size_presets(workload: Workload, size: dict[str, int]) -> None:
    fitting = [name for name, preset in workload.presets.items() if {**workload.default_size(), **preset} == size]
    st.session_state["size_preset"] = fitting[0] if fitting else None
    st.pills(
        "Sizes", list(workload.presets), key="size_preset", on_change=_set_size, args=(workload,),
        label_visibility="collapsed",
    )  # fmt: skip


def _picture(workload: Workload, size: dict[str, int]) -> str:
    dtype = st.session_state.get("dtype") or workload.dtypes[0]
    dtype = dtype if dtype in workload.dtypes else workload.dtypes[0]
    case = Case(workload, size, dtype)
    return picture.shapes(case.batch, case.leaves(workload.element_input), case.leaves(workload.element_output))


def workload_options(workload: Workload) -> dict[str, Any]:
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


def dtype_and_device(workload: Workload, devices: tuple[str, ...]) -> tuple[str, str]:
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


def _advanced(workload: Workload, words: Sequence[str], budget_s: float) -> tuple[dict[str, Any], list[str]]:
    """The rarely changed choices, and the words of the list of strategies."""
    everything = [strategy.slug for strategy in strategies.all_strategies(workload)]
    with st.expander("Advanced", icon=":material/tune:", key="advanced"):
        listed = st.multiselect(
            "Strategies as a list", [*WORDS, NONE, *everything], default=list(words), key="strategies",
            accept_new_options=True, bind="query-params", select_all=False,
            help="The grid above, as text. A strategy's own options can be typed: mapper.mode?option=value",
        )  # fmt: skip
        with st.grid(2, min_column_width=130, gap="small"):
            budget = st.number_input(
                "Time budget (s)", min_value=1.0, max_value=requests.MOST_BUDGET_S, value=budget_s,
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
    return advanced, list(listed)


def raw_request(case: Case, chosen: tuple[str, ...], advanced: dict[str, Any]) -> dict[str, Any]:
    """The choices as a request that is still to be parsed."""
    return {
        "workload": case.workload.slug,
        "workload_options": case.options,
        "size": case.size,
        "dtype": case.dtype,
        "device": case.device,
        # With nothing chosen, a size that is too large for everything is still what has to be said first.
        "strategies": list(chosen) or "all",
        **{name: advanced[name] for name in ("budget_s", "memory_limit_mib", "threads", "seed")},
    }


def baseline(advanced: dict[str, Any]) -> str | None:
    """The chosen baseline's slug; None for automatic."""
    return None if advanced["baseline"] == AUTOMATIC else advanced["baseline"]


def _judge(case: Case, chosen: tuple[str, ...], problem: str | None, advanced: dict[str, Any]) -> Choices:
    """The request that the choices make, whether it can fit, and what it will need."""
    base = baseline(advanced)
    try:
        request = requests.parse(raw_request(case, chosen, advanced))
    except RequestError as error:
        return Choices(None, str(error), base)
    refusal = fit.check(request, environment.available_memory()) or problem
    if refusal or not chosen:
        return Choices(None, refusal or "Choose at least one strategy.", base)
    needs = forecast.forecast_run(case, chosen, request.budget_s)
    return Choices(request, None, base, needs)
