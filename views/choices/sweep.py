"""The choices of a sweep: one or two axes with their ranges, and everything that stays the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

import strategies
import workloads
from measure import admission
from measure.run.fit import SweepForecast
from measure.run.request import RequestError
from measure.run.run import Run
from measure.run.sweep_request import DEFAULT_BUDGET_S, MOST_POINTS, SCALES, SweepRequest, parse_range, parse_sweep
from measure.run.sweep_request import of_run as request_of_run
from views.choices import address, compare, ranges
from views.choices.address import NONE, WORDS, Field, Form
from views.choices.case import (
    choose_workload,
    current,
    dtype_and_device,
    place_of,
    sizes,
    start_with_defaults,
    workload_options,
)
from views.choices.ranges import Bounds, sweepable
from views.choices.summary import NOTHING
from views.ui import look
from views.ui.memo import Memo
from views.ui.parameters import size_key
from workloads.case import Case

# The fields of a range, and those of the first axis as they were set last, not by a person.
_RANGE = ("from", "to", "points")
_STARTED = "range_started"
_memo = Memo(__name__)


@dataclass(frozen=True)
class SweepChoices:
    """A request, or why the choices make none: ``wrong`` names the choices whose fields say it, ``refusal`` is a
    sentence that nothing else says."""

    request: SweepRequest | None
    refusal: str | None
    baseline: str | None
    needs: SweepForecast | None = None
    wrong: tuple[str, ...] = ()


def unasked(devices: tuple[str, ...]) -> SweepChoices:
    """The choices of a page that asks for nothing: none is drawn, and the baseline is the address's."""
    return SweepChoices(None, None, compare.unasked(devices).baseline)


def choose(devices: tuple[str, ...]) -> SweepChoices:
    """Draw all choices but Run. ``devices`` is empty while the measuring process is starting."""
    workload = choose_workload(_workload_changed)
    bounds = sweepable(workload)
    with st.container(key="axes", gap="small", border=True):
        first, fault = _axis(1, bounds, list(bounds))
        second, second_fault = _axis(2, bounds, _seconds(bounds, first["name"]))
    axes = [first, second] if second else [first]
    swept = {axis["name"] for axis in axes if axis["kind"] == "size"}
    of_page = fields(
        {"workload": workload.slug, "sweep": first["name"], "sweep_2": second["name"] if second else NOTHING}
    )
    size, wrong = sizes(workload, of_page, swept)
    options, wrong_options = workload_options(workload, of_page)
    dtype, device, wrong_device = dtype_and_device(workload, devices)
    # Which strategies are usual, or thrifty, is asked at the sizes that the workload has where nobody chooses.
    case = Case(workload, size, dtype, options, device)
    chosen, problem, advanced = compare.strategies_and_advanced(case, of_page)
    baseline = compare.baseline(advanced)
    wrong = [*(["range"] if fault or second_fault else []), *wrong, *wrong_options, *wrong_device, *advanced["wrong"]]
    if wrong or problem:
        return SweepChoices(None, problem, baseline, wrong=tuple(wrong))
    fixed = {name: value for name, value in size.items() if name not in swept}
    try:
        request = parse_sweep({**compare.raw_request(case, chosen, advanced), "size": fixed, "axes": axes})
    except RequestError as error:
        return SweepChoices(None, str(error), baseline)
    needs = _memo.get((strategies.version(), repr(request)), lambda: admission.sweep_needs(request))
    if not needs.peak_bytes:  # nothing is left to measure
        return SweepChoices(None, f"No point of this sweep can fit. {needs.skipped[0][1]}", baseline)
    return SweepChoices(request, None, baseline, needs)


def _key(name: str, number: int) -> str:
    """Return the key of an axis' widget, and so its name in the address."""
    return name if number == 1 else f"{name}_{number}"


def _axis(number: int, bounds: Mapping[str, Bounds], offered: Sequence[str]) -> tuple[dict[str, Any], str | None]:
    """Draw one axis; return it as `parse_sweep` reads it, empty for none, and the fault of its range, which is shown
    here."""
    key = _key("sweep", number)
    if current(key) not in offered:
        st.session_state[key] = offered[0]
    options = ", ".join(name for name in offered if name != NOTHING and bounds[name].kind == "option")
    name = st.selectbox(
        "Sweep" if number == 1 else "Second size", offered, index=place_of(key, offered), key=key,
        on_change=_axis_changed, args=(number,), format_func=lambda name: "none" if name == NOTHING else name,
        help="Two sizes make a map: who is fastest at each pair of them." if number == 2
        else f"A size of the workload{f', or an option of strategies: {options}' if options else ''}.",
    )  # fmt: skip
    if name == NOTHING:
        return {}, None
    of = bounds[name]
    # Values that are no grid take the place of where it starts.
    listed = "," in current(_key("from", number), "")
    with st.container(horizontal=True, gap="small", key=f"range_{number}", vertical_alignment="bottom"):
        first = st.text_input(
            "Values" if listed else "From", value=current(_key("from", number), ""), key=_key("from", number),
            width=220 if listed else 90, help=f"from {of.least:,}; or the values themselves, as 1, 2, 8",
        )  # fmt: skip
        last = st.text_input(
            "To", value=current(_key("to", number), ""), key=_key("to", number), width=90, disabled=listed,
            help=f"to {of.most:,}",
        )  # fmt: skip
        points = st.number_input(
            "Points", value=current(_key("points", number), 2), step=1, key=_key("points", number), width=110,
            disabled=listed, help=f"from 2 to {MOST_POINTS}",
        )  # fmt: skip
        scale = st.segmented_control(
            "Scale", SCALES, default=current(_key("scale", number), SCALES[0]), key=_key("scale", number),
            required=True,
        )  # fmt: skip
    ends = f"{first.strip()}:{last.strip()}" if first.strip() or last.strip() else ""
    axis = {"kind": of.kind, "name": name, "range": first if listed else ends, "scale": scale, "points": points}
    try:
        parse_range(axis["range"], scale, points, name=name, least=of.least, most=of.most)
    except RequestError as error:
        st.warning(look.plain(error), icon=":material/block:")
        return axis, str(error)
    return axis, None


def _workload_changed() -> None:
    start_with_defaults()
    st.session_state["sweep"] = next(iter(sweepable(workloads.get(st.session_state["workload"]))))
    st.session_state["sweep_2"] = NOTHING
    _axis_changed(1)


def _axis_changed(number: int) -> None:
    """Set what to start from with what is swept now; beside another second size, the first keeps a range that a person
    has set."""
    workload, first = workloads.get(st.session_state["workload"]), st.session_state["sweep"]
    bounds = sweepable(workload)
    if current("sweep_2") not in _seconds(bounds, first):
        st.session_state["sweep_2"] = NOTHING
    own = tuple(current(key) for key in _RANGE)
    stays = number == 2 and own not in (current(_STARTED), ranges.start(workload, [first])[first].fields)
    for place, wanted in enumerate(ranges.start(workload, _swept(st.session_state)).values(), 1):
        if place == 2 or not stays:
            for key, value in zip(_RANGE, wanted.fields, strict=True):
                st.session_state[_key(key, place)] = value
    if not stays:
        st.session_state[_STARTED] = tuple(current(key) for key in _RANGE)
    having = ranges.having(workload, first) if bounds[first].kind == "option" else []
    chosen = [word for word in current("strategies", []) if word != NONE]
    mappers = {strategies.parse(slug).mapper for slug in having}
    # None of the chosen strategies may have the option that is swept.
    if having and not any(word in WORDS or word.partition(".")[0] in mappers for word in chosen):
        st.session_state["strategies"] = [*chosen, *having]


# --- from and into an address ----------------------------------------------------------------------------------------


def fields(form: Mapping[str, Any]) -> dict[str, Field]:
    """Return the fields of a sweep that follow from these choices, as `address.Fields` are."""
    made = address.fields(form, budget_s=DEFAULT_BUDGET_S)
    if "workload" not in form:
        return made
    workload, usual = workloads.get(form["workload"]), made.pop("strategies")
    bounds = sweepable(workload)
    made["sweep"] = Field(next(iter(bounds)), address.one_of("sweep", list(bounds)), within=("workload",))
    if "sweep" in form:
        seconds = _seconds(bounds, form["sweep"])
        made["sweep_2"] = Field(NOTHING, address.one_of("sweep", seconds), within=("workload", "sweep"))
    if not {"sweep", "sweep_2"} <= form.keys():
        return made
    # Ranges and strategies to start from depend on all that is swept.
    names, within = _swept(form), ("workload", "sweep", "sweep_2")
    made["strategies"] = replace(usual, default=ranges.words(workload, names), within=within)
    for number, wanted in enumerate(ranges.start(workload, names).values(), 1):
        first, last, points = wanted.fields
        made |= {
            _key("from", number): Field(first, address.text, within=within),
            _key("to", number): Field(last, address.text, within=within),
            _key("points", number): Field(points, address.whole("points"), within=within),
            _key("scale", number): Field(SCALES[0], address.one_of("scale", SCALES), within=within),
        }
    return made


def _swept(form: Any) -> list[str]:
    return [form[key] for key in ("sweep", "sweep_2") if form[key] != NOTHING]


def _seconds(bounds: Mapping[str, Bounds], first: str) -> list[str]:
    """Return what can be swept beside the first axis."""
    # A map of winners is over two sizes: at one value of an option there is a winner of those that have it only.
    sizes = [name for name, of in bounds.items() if of.kind == "size" and name != first]
    return [NOTHING, *(sizes if bounds[first].kind == "size" else [])]


def of_run(run: Run) -> Form:
    """Return the form of a sweep, which would measure the same points again; empty where it cannot be asked for
    here."""
    try:
        return form_of(request_of_run(run))
    except (RequestError, ValueError):
        return {}


def form_of(request: SweepRequest) -> Form:
    """Return the form that asks for this."""
    form = address.of_request(request.base.record()) | {"sweep_2": NOTHING}
    for number, axis in enumerate(request.axes, 1):
        form.pop(size_key(axis.name), None)
        points = ranges.points_of(axis)
        form |= {
            _key("sweep", number): axis.name,
            _key("from", number): str(axis.values[0]) if points else ", ".join(map(str, axis.values)),
            _key("to", number): str(axis.values[-1]),
            _key("points", number): points or len(axis.values),
            _key("scale", number): axis.scale,
        }
    return form
