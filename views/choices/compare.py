"""The choices of a comparison. Every choice lives in the address, by its widget's key."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

import strategies
from measure.machine import environment
from measure.model import fit, forecast
from measure.model.request import (
    DEFAULT_BUDGET_S,
    MOST_BUDGET_S,
    MOST_SEED,
    MOST_THREADS,
    Request,
    RequestError,
    parse,
)
from views.choices import grid
from views.choices.address import AUTOMATIC, NONE, WORDS
from views.choices.case import choose_workload, dtype_and_device, sizes, start_with_defaults, workload_options
from workloads.case import Case
from workloads.spec import Workload


@dataclass(frozen=True)
class Choices:
    """A request, or the sentence why the choices make none. ``baseline`` is a slug, or None for automatic."""

    request: Request | None
    refusal: str | None
    baseline: str | None
    needs: forecast.RunForecast | None = None


def choose(devices: tuple[str, ...]) -> Choices:
    """Draw all choices but Run. ``devices`` is empty while the measuring process is starting."""
    workload = choose_workload(start_with_defaults)
    size = sizes(workload)
    options = workload_options(workload)
    dtype, device = dtype_and_device(workload, devices)
    case = Case(workload, size, dtype, options, device)
    chosen, problem, advanced = strategies_and_advanced(case)
    return _judge(case, chosen, problem, advanced)


def strategies_and_advanced(
    case: Case, words: Sequence[str] = (WORDS[0],), budget_s: float = DEFAULT_BUDGET_S
) -> tuple[tuple[str, ...], str | None, dict[str, Any]]:
    """Draw the grid of strategies and the rarely changed choices, and return the chosen slugs, what is wrong with them,
    and the rarely changed choices by name. ``words`` are chosen at first."""
    # The list inside "Advanced" holds the chosen strategies, and the grid above it shows them: so it comes first.
    box = st.container(key="strategies_box", gap="small")
    advanced, listed = _advanced(case.workload, words, budget_s)
    presets = grid.presets_of(case)
    chosen, problem = grid.resolve(case, presets, listed)
    with box:
        grid.draw(case, presets, chosen)
    return chosen, problem, advanced


def _advanced(workload: Workload, words: Sequence[str], budget_s: float) -> tuple[dict[str, Any], list[str]]:
    """Draw and return the rarely changed choices, and the words of the list of strategies."""
    everything = [strategy.slug for strategy in strategies.all_strategies(workload)]
    with st.expander("Advanced", icon=":material/tune:", key="advanced"):
        listed = st.multiselect(
            "Strategies as a list", [*WORDS, NONE, *everything], default=list(words), key="strategies",
            accept_new_options=True, bind="query-params", select_all=False,
            help="The grid above, as text. A strategy's own options can be typed: mapper.mode?option=value",
        )  # fmt: skip
        with st.grid(2, min_column_width=130, gap="small"):
            budget = st.number_input(
                "Time budget (s)", min_value=1.0, max_value=MOST_BUDGET_S, value=budget_s,
                step=10.0, format="%g", key="budget", bind="query-params",
                help="Sampling ends at the latest after this time; beside Run is said what that tells apart.",
            )  # fmt: skip
            limit = st.number_input(
                "Memory limit (MiB)", min_value=1, max_value=2**24, value=None, step=256, key="memory_limit",
                placeholder="none", bind="query-params",
                help="What needs more than this fails cleanly as out of memory.",
            )  # fmt: skip
            threads = st.number_input(
                "Threads", min_value=1, max_value=MOST_THREADS, value=None, step=1, key="threads",
                placeholder="TensorFlow's choice", bind="query-params", help="Of TensorFlow's thread pools.",
            )  # fmt: skip
            seed = st.number_input(
                "Seed", min_value=0, max_value=MOST_SEED, value=0, step=1, key="seed", bind="query-params",
                help="Of the inputs' random numbers.",
            )  # fmt: skip
        # Chosen in a result, it may be a strategy that is no cell of this workload's grid.
        asked = st.session_state.get("baseline") or AUTOMATIC
        baseline = st.selectbox(
            "Baseline", list(dict.fromkeys((AUTOMATIC, *everything, asked))), key="baseline", bind="query-params",
            help="What others are compared with; auto: map_fn.graph, else loop.eager, else the slowest that is timed.",
        )  # fmt: skip
    advanced = {"budget_s": budget, "memory_limit_mib": limit, "threads": threads, "seed": seed, "baseline": baseline}
    return advanced, list(listed)


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
        **{name: advanced[name] for name in ("budget_s", "memory_limit_mib", "threads", "seed")},
    }


def baseline(advanced: dict[str, Any]) -> str | None:
    """Return the chosen baseline's slug; None for automatic."""
    return None if advanced["baseline"] == AUTOMATIC else advanced["baseline"]


def _judge(case: Case, chosen: tuple[str, ...], problem: str | None, advanced: dict[str, Any]) -> Choices:
    """Return the request that the choices make and the forecast of its needs, or why it cannot fit."""
    base = baseline(advanced)
    try:
        request = parse(raw_request(case, chosen, advanced))
    except RequestError as error:
        return Choices(None, str(error), base)
    refusal = fit.check(request, environment.available_memory()) or problem
    if refusal or not chosen:
        return Choices(None, refusal or "Choose at least one strategy.", base)
    needs = forecast.forecast_run(case, chosen, request.budget_s)
    return Choices(request, None, base, needs)
