"""The choices of a comparison; their keys are those of `address.fields`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

import strategies
from measure import admission
from measure.run import forecast
from measure.run.request import (
    ALLOCATORS,
    DEFAULT_BUDGET_S,
    MOST_BUDGET_S,
    MOST_THREADS,
    Request,
    RequestError,
    again,
    case_of,
    parse,
)
from measure.run.run import Run
from views.choices import address, grid
from views.choices.address import AUTOMATIC, NONE, WORDS, Field, Form
from views.choices.case import (
    choose_workload,
    current,
    dtype_and_device,
    faults,
    number,
    place_of,
    sizes,
    start_with_defaults,
    workload_options,
)
from workloads.case import Case


@dataclass(frozen=True)
class Choices:
    """A request, or why the choices make none: ``wrong`` names the choices whose fields say it, ``refusal`` is a
    sentence that nothing else says. ``baseline`` is a slug, or None for automatic."""

    request: Request | None
    refusal: str | None
    baseline: str | None
    needs: forecast.RunForecast | None = None
    wrong: tuple[str, ...] = ()


def choose(devices: tuple[str, ...]) -> Choices:
    """Draw all choices but Run. ``devices`` is empty while the measuring process is starting."""
    workload = choose_workload(start_with_defaults)
    known = address.fields({"workload": workload.slug})
    size, wrong = sizes(workload, known)
    options, wrong_options = workload_options(workload, known)
    dtype, device, wrong_device = dtype_and_device(workload, devices)
    case = Case(workload, size, dtype, options, device)
    chosen, problem, advanced = strategies_and_advanced(case, known)
    base = baseline(advanced)
    if wrong := [*wrong, *wrong_options, *wrong_device, *advanced["wrong"]]:
        return Choices(None, problem, base, wrong=tuple(wrong))
    try:
        request = parse(raw_request(case, chosen, advanced))
    except RequestError as error:
        return Choices(None, str(error), base)
    if refusal := admission.refusal(request) or problem:
        return Choices(None, refusal, base)
    return Choices(request, None, base, forecast.forecast_run(case, chosen, request.budget_s))


def unasked(devices: tuple[str, ...]) -> Choices:
    """The choices of a page that asks for nothing: none is drawn, and the baseline is the address's."""
    return Choices(None, None, baseline({"baseline": current("baseline") or AUTOMATIC}))


def of_run(run: Run) -> Form:
    """Return the form of a comparison, with a word for its strategies where there is one; empty where it cannot be
    asked for here, as an imported one may not."""
    try:
        request = again(run.request)
    except (RequestError, ValueError):
        return {}
    form = address.of_request(request.record())
    presets = grid.presets_of(case_of(request))
    for word, preset in zip(WORDS, ("Default", "All"), strict=True):
        if set(presets[preset][1]) == set(request.strategies):
            form["strategies"] = [word]
    return form


def strategies_and_advanced(
    case: Case, known: Mapping[str, Field]
) -> tuple[tuple[str, ...], str | None, dict[str, Any]]:
    """Draw the grid of strategies and the rarely changed choices, and return the chosen slugs, what is wrong with them,
    and the rarely changed choices by name, under ``wrong`` the names of those that are not valid."""
    # The list inside "Advanced" holds the chosen strategies, and the grid above it shows them: so it comes first.
    box = st.container(key="strategies_box", gap="small")
    everything = [strategy.slug for strategy in strategies.all_strategies(case.workload)]
    with st.expander("Advanced", icon=":material/tune:", key="advanced"):
        words = current("strategies", [])
        listed = st.multiselect(
            "Strategies as a list", list(dict.fromkeys((*WORDS, NONE, *everything, *words))), default=words,
            key="strategies", accept_new_options=True, select_all=False,
            help="The grid above, as text. A strategy's own options can be typed: mapper.mode?option=value",
        )  # fmt: skip
        with st.grid(2, min_column_width=130, gap="small"):
            advanced = {
                "budget_s": number(
                    "Time budget (s)", "budget", known["budget"], step=10.0, format="%g",
                    help=f"From 1 to {MOST_BUDGET_S:,.0f} s: the time from Run to the verdict. The more is left for "
                    "timing, the smaller are the differences that are told.",
                ),
                "memory_limit_mib": number(
                    "Memory limit (MiB)", "memory_limit", known["memory_limit"], step=256, placeholder="none",
                    help="What needs more than this fails cleanly as out of memory.",
                ),
                "threads": number(
                    "Threads", "threads", known["threads"], step=1, placeholder="TensorFlow's choice",
                    help=f"Threads in each of TensorFlow's pools, from 1 to {MOST_THREADS:,}.",
                ),
                "seed": number(
                    "Seed", "seed", known["seed"], step=1,
                    help="The inputs are random numbers; the same seed makes the same ones.",
                ),
            }  # fmt: skip
        advanced["allocator"] = st.selectbox(
            "Allocator", ALLOCATORS, index=place_of("allocator", ALLOCATORS), key="allocator",
            help="Where memory comes from while latencies are timed. A pool keeps what is freed in the process, as "
            "TF_CPU_ALLOCATOR_USE_BFC=true does, so that no call pays for fresh pages. The default may give large "
            "buffers back to the system at each call, depending on the CPU.",
        )  # fmt: skip
        # Chosen in a result, it may be a strategy that is no cell of this workload's grid.
        asked = current("baseline") or AUTOMATIC
        offered = list(dict.fromkeys((AUTOMATIC, *everything, asked)))
        advanced["baseline"] = st.selectbox(
            "Baseline", offered, index=offered.index(asked), key="baseline",
            help="What others are compared with; auto: map_fn.graph, else loop.eager, else the slowest that is timed.",
        )  # fmt: skip
    # Outside of the folded part, where it would be missed.
    wrong = faults({key: known[key] for key in ("budget", "memory_limit", "threads", "seed")})
    advanced["wrong"] = [{"budget": "time budget"}.get(key, key).replace("_", " ") for key in wrong]
    presets = grid.presets_of(case)
    chosen, problem = grid.resolve(case, presets, list(listed))
    with box:
        grid.draw(case, presets, chosen)
    return chosen, problem, advanced


def raw_request(case: Case, chosen: tuple[str, ...], advanced: dict[str, Any]) -> dict[str, Any]:
    """Return the choices as a request that is still to be parsed."""
    return {
        "workload": case.workload.slug,
        "workload_options": case.options,
        "size": case.size,
        "dtype": case.dtype,
        "device": case.device,
        # With nothing chosen, a size that is too large for everything is still what has to be said first.
        "strategies": list(chosen) or "all",
        # The usual budget is longer where that is needed.
        "budget_s": None if advanced["budget_s"] == DEFAULT_BUDGET_S else advanced["budget_s"],
        **{name: advanced[name] for name in ("memory_limit_mib", "threads", "seed", "allocator")},
    }


def baseline(advanced: dict[str, Any]) -> str | None:
    """Return the chosen baseline's slug; None for automatic."""
    return None if advanced["baseline"] == AUTOMATIC else advanced["baseline"]
