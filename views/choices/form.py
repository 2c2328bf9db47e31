"""The form of Compare and of Sweep: widgets in which a person chooses what to measure, a sweep being a comparison with
one or two axes. Their keys are those of `address.fields`."""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

import strategies
import workloads
from measure import admission, client, hosting
from measure.judge.lines import readable
from measure.judge.warnings import BUSY_CORES
from measure.machine import environment
from measure.making import missing
from measure.run import listing, text
from measure.run.fit import SweepForecast
from measure.run.forecast import RunForecast
from measure.run.request import (
    ALLOCATORS,
    DEFAULT_BUDGET_S,
    MAX_AUTO_S,
    MOST_BUDGET_S,
    MOST_THREADS,
    Request,
    RequestError,
    parse,
    parse_size,
)
from measure.run.sweep_request import SweepRequest, parse_sweep
from views.choices import address, axes, grid, own
from views.choices.address import AUTOMATIC, BUDGET_S, Kind, option_key, size_key
from views.ui import look
from views.ui.memo import Memo
from workloads import places
from workloads.case import Case
from workloads.discovery import DiscoveryError
from workloads.spec import Leaf, Workload

_memo = Memo(__name__)


@dataclass(frozen=True)
class Choices:
    """A request and its forecast as Markdown, or the sentence why the choices make none. ``baseline`` is a slug, or
    None for automatic."""

    request: Request | SweepRequest | None
    baseline: str | None
    refusal: str | None = None
    needs: str = ""


def choose(kind: Kind, devices: tuple[str, ...]) -> Choices:
    """Draw all choices but Run. ``devices``: those of `Client.places`, empty while the measuring process is starting. A
    server that measures nothing draws none."""
    state = st.session_state
    baseline = None if state.get("baseline") == AUTOMATIC else state.get("baseline")
    if places.viewer():
        return Choices(None, baseline)
    workload = _workload(kind)
    asked_axes = axes.draw(workload) if kind == "sweep" else []
    swept = {axis["name"] for axis in asked_axes if axis["kind"] == "size"}
    case, refusal = _case(workload, swept, devices)
    chosen, problem, advanced = _strategies_and_advanced(kind, case)
    if refusal or problem:
        return Choices(None, baseline, refusal or problem)
    size = {name: value for name, value in case.size.items() if name not in swept}
    asked = {"workload": workload.slug, "workload_options": case.options, "size": size, "strategies": list(chosen)}
    asked |= {"dtype": case.dtype, "device": state["device"], **advanced}
    request: Request | SweepRequest
    try:
        if kind == "compare":
            request = parse(asked)
            refusal = missing(request, devices) or (None if request.machine else admission.refusal(request))
            ahead: RunForecast | SweepForecast = client.shared().forecast(request)
        else:
            request = sweep = parse_sweep({**asked, "axes": asked_axes})
            if too_much := admission.beyond(sweep, hosting.limits()):  # its forecast may take seconds
                raise RequestError(too_much)
            gib = environment.available_memory() // 2**30  # what fits changes with it
            ahead = _memo.get((strategies.version(), repr(sweep), gib), lambda: admission.sweep_needs(sweep))
            nothing = "" if ahead.points else f"No point of this sweep can fit. {ahead.skipped[0][1]}"
            refusal = missing(sweep.base, devices) or ("" if sweep.base.machine else nothing)
    except RequestError as error:
        refusal = str(error)
    if refusal:
        return Choices(None, baseline, refusal)
    return Choices(request, baseline, needs=_needs(request, ahead))


def _needs(request: Request | SweepRequest, ahead: RunForecast | SweepForecast) -> str:
    """Return what a run will need as Markdown, and which points of a sweep cannot fit."""
    slugs = request.base.strategies if isinstance(request, SweepRequest) else request.strategies
    time, why = f"about **{look.duration(ahead.seconds)}**", ""
    if isinstance(ahead, RunForecast) and ahead.max_seconds > ahead.seconds:
        most = look.duration(ahead.max_seconds)
        time += f" (at most {most})"
        if (cores := client.shared().load.cores_of_others()) > BUSY_CORES:
            time = f"**{ahead.seconds:.0f} s to {most}**"
            why = f". Other programs use {cores:.1f} cores"
    strategies = text.counted(len(slugs), "strategy", "strategies")
    words = f"{strategies}: {time} and **{look.size(ahead.peak_bytes)}**{why}"
    if isinstance(ahead, SweepForecast):
        words = f"{len(ahead.points) + len(ahead.skipped)} points, {words}"
        for at, reason in ahead.skipped:
            words += f"\n- :material/block: {look.plain(readable(at))} is left out: {look.plain(reason)}"
        if ahead.too_long:
            words += f"\n- :material/timer_off: {look.plain(look.sentence(ahead.too_long))}"
    return words


def _select(label: str, key: str, options: Iterable[str], **more: Any) -> str:
    """Draw a list. What is chosen is its default, too: a field whose code comes late to a browser, after a second run
    of the page, has nothing but its default."""
    options, chosen = list(options), st.session_state.get(key)
    place = options.index(chosen) if chosen in options else 0
    return str(st.selectbox(label, options, index=place, key=key, **more))


def _number(label: str, key: str, default: float | None, **more: Any) -> Any:
    """Draw a field of whole numbers, or of seconds. It takes any number: beside Run stands what is wrong with one that
    is not valid, where a field with bounds would keep the last valid one and measure that."""
    chosen = st.session_state.get(key, default)
    if default is not None:
        if isinstance(default, float) and isinstance(chosen, int):  # a browser may send seconds so
            chosen = float(chosen)
        return st.number_input(label, value=chosen, key=key, **more)
    # One that may be empty can only be emptied where its default is nothing: what is chosen is set with every run of
    # the page, so that it is there however late the field's code comes.
    if chosen is not None:
        st.session_state[key] = chosen
    return st.number_input(label, value=None, key=key, **more)


# --- the case --------------------------------------------------------------------------------------------------------


def _workload(kind: Kind) -> Workload:
    by_slug = {workload.slug: workload for workload in workloads.all()}
    groups = list(dict.fromkeys(workload.group for workload in by_slug.values()))
    for path, message in listing.broken().items():
        st.warning(look.plain(Path(path).name + message.removeprefix(path)), icon=":material/broken_image:")
    if st.session_state.get("workload") not in by_slug:  # its file was found to be broken just now
        st.session_state["workload"] = workloads.names()[0]

    def changed() -> None:
        with contextlib.suppress(DiscoveryError):  # a browser may send what is not in the list
            _start_with_defaults(kind)

    slug = _select(
        "Workload", "workload", sorted(by_slug, key=lambda slug: groups.index(by_slug[slug].group)),
        on_change=changed, format_func=lambda slug: own.label(by_slug[slug]), filter_mode="contains",
    )  # fmt: skip
    own.draw(by_slug[slug], changed)
    return by_slug[slug]


def _start_with_defaults(kind: Kind) -> None:
    """Set the defaults of a workload that has just been chosen: another one's sizes say nothing about it, and it may
    lack what some strategies need, such as a rewrite."""
    state = st.session_state
    for field in address.fields(kind, state):
        if field.within and field.key not in ("dtype", "strategies"):
            state[field.key] = field.default
    workload = workloads.get(state["workload"])
    lacking = {mapper.slug for mapper in strategies.mappers() if strategies.missing(mapper, workload)}
    state["strategies"] = [word for word in state.get("strategies", []) if word.partition(".")[0] not in lacking]


def _case(workload: Workload, swept: set[str], devices: tuple[str, ...]) -> tuple[Case, str | None]:
    """Draw sizes, options, dtype and device. Return the case, and what is wrong with its sizes or options, which have
    their defaults then. What is ``swept`` has no field, and its default."""
    about = st.container(gap="xsmall", key="about_workload")
    presets_place = st.container(key="size_presets")
    size, options = workload.default_size(), workload.default_options()
    with st.grid(2, min_column_width=110, gap="small", key="sizes"):
        for item in workload.sizes:
            if item.name not in swept:
                bounds = f"{item.help}; from {item.least:,} to {item.most:,}"
                size[item.name] = _number(item.name, size_key(item.name), item.default, step=1, help=bounds)
    for option in workload.options:
        key, more = option_key(option.name), {"help": option.help}
        if option.values is None:
            options[option.name] = _number(option.name, key, int(option.default), step=1, **more)
        else:
            options[option.name] = _select(option.name, key, map(str, option.values), **more)
    left, right = st.columns(2, wrap=False)
    with left:
        dtype = _select("dtype", "dtype", workload.dtypes)
    with right:
        device = _select(
            "device", "device", dict.fromkeys(("CPU:0", *devices, st.session_state.get("device", "CPU:0"))),
            help="Found by the measuring processes, also those of other machines, whose names stand before them.",
        )  # fmt: skip
    try:
        size = parse_size(workload, size)
        options = {option.name: option.parse(str(options[option.name])) for option in workload.options}
        refusal = None if swept else own.fault_at(workload, size)
    except ValueError as error:
        refusal = str(error)
    if refusal:
        size, options = workload.default_size(), workload.default_options()
    case = Case(workload, size, dtype, options, device.rpartition(" / ")[2])
    with about:
        st.caption(
            f"**{look.plain(workload.title)}** · {look.plain(workload.formula)}", help=look.plain(workload.summary)
        )
        if not swept and not refusal:
            st.caption(_shapes(case))
    if not swept:
        with presets_place:
            _presets(workload, {} if refusal else size)
    return case, refusal


def _presets(workload: Workload, size: dict[str, int]) -> None:
    presets = {name: {**workload.default_size(), **preset} for name, preset in workload.presets.items()}
    st.session_state["size_preset"] = next((name for name, preset in presets.items() if preset == size), None)

    def choose() -> None:
        for name, value in presets.get(st.session_state["size_preset"], {}).items():
            st.session_state[size_key(name)] = value

    st.pills("Sizes", list(presets), key="size_preset", on_change=choose, label_visibility="collapsed")


def _shapes(case: Case) -> str:
    """Return the tensors of a batch, in and out, as Markdown."""

    def of(leaves: list[Leaf]) -> str:
        shapes = [" × ".join(f"{side:,}" if isinstance(side, int) else side for side in leaf.sides) for leaf in leaves]
        parts = [
            f"**{case.batch:,}**{' × ' * bool(shape)}{look.plain(shape)} {leaf.dtype}"
            for shape, leaf in zip(shapes, leaves, strict=True)
        ]
        return f"{' and '.join(parts)}, {look.size(case.batch * sum(leaf.bytes for leaf in leaves))}"

    inputs, outputs = case.leaves(case.workload.element_input), case.leaves(case.workload.element_output)
    return f"{of(inputs)} → fn, {case.batch:,} times → {of(outputs)}"


def _strategies_and_advanced(kind: Kind, case: Case) -> tuple[tuple[str, ...], str | None, dict[str, Any]]:
    """Draw the grid of strategies and the rarely changed choices. Return the chosen slugs, what is wrong with them, and
    the rarely changed choices as a request has them."""
    # The list inside "Advanced" holds the chosen strategies, and the grid above it shows them: so it comes first.
    box = st.container(key="strategies_box", gap="small")
    presets = grid.presets_of(case)
    with st.expander("Advanced", icon=":material/tune:", key="advanced"):
        words = st.session_state.get("strategies", [])
        listed = st.multiselect(
            "Strategies as a list", list(dict.fromkeys((*grid.WORDS, grid.NONE, *presets["All"], *words))),
            default=words, key="strategies", accept_new_options=True, select_all=False,
            help="The grid above, as text. A strategy's own options can be typed: mapper.mode?option=value",
        )  # fmt: skip
        with st.grid(2, min_column_width=130, gap="small"):
            advanced = {
                "budget_s": _number(
                    "Time budget (s)", "budget", BUDGET_S[kind], step=10.0, format="%g", placeholder="auto",
                    help=f"Time from Run to the verdict. auto: about {DEFAULT_BUDGET_S:.0f} s on a quiet machine, up "
                    f"to {MAX_AUTO_S:.0f} s while the answer is not usable. A number, from 1 to {MOST_BUDGET_S:,.0f}: "
                    "no longer than that.",
                ),
                "memory_limit_mib": _number(
                    "Memory limit (MiB)", "memory_limit", None, step=256, placeholder="none",
                    help="What needs more than this fails cleanly as out of memory.",
                ),
                "threads": _number(
                    "Threads", "threads", None, step=1, placeholder="TensorFlow's choice",
                    help=f"Threads in each of TensorFlow's pools, from 1 to {MOST_THREADS:,}.",
                ),
                "seed": _number(
                    "Seed", "seed", 0, step=1,
                    help="The inputs are random numbers; the same seed makes the same ones.",
                ),
            }  # fmt: skip
        advanced["allocator"] = _select(
            "Allocator", "allocator", ALLOCATORS,
            help="Where memory comes from while latencies are timed. A pool keeps what is freed in the process, as "
            "TF_CPU_ALLOCATOR_USE_BFC=true does, so that no call pays for fresh pages. The default may give large "
            "buffers back to the system at each call, depending on the CPU.",
        )  # fmt: skip
        # Chosen in a result, it may be a strategy that is no cell of this workload's grid.
        asked = st.session_state.get("baseline") or AUTOMATIC
        _select(
            "Baseline", "baseline", dict.fromkeys((AUTOMATIC, *presets["All"], asked)),
            help="What others are compared with; auto: map_fn.graph, else loop.eager, else the slowest that is timed.",
        )  # fmt: skip
    chosen, problem = grid.resolve(case, presets, list(listed))
    with box:
        grid.draw(case.workload, presets, chosen)
    return chosen, problem, advanced
