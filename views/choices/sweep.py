"""The choices of a sweep: one or two axes with their ranges, and everything that stays the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

import strategies
import workloads
from measure.machine import environment
from measure.model.request import RequestError
from measure.model.run import Axis, Run
from measure.sweep.needs import SweepForecast, forecast_sweep
from measure.sweep.request import (
    DEFAULT_BUDGET_S,
    DEFAULT_POINTS,
    MOST_POINTS,
    SCALES,
    SweepRequest,
    parse_range,
    parse_sweep,
)
from measure.sweep.request import of_run as request_of_run
from views.choices import address, compare, grid
from views.choices.address import Field, Form
from views.choices.case import choose_workload, dtype_and_device, sizes, start_with_defaults, workload_options
from views.ui import look
from views.ui.memo import Memo
from views.ui.parameters import size_key
from workloads.case import Case
from workloads.spec import Workload

_NOTHING = "nothing"
_LIST_WIDTH = 220  # pixels
_TIMES_DEFAULT = 10  # how far a range goes beyond a default, where nobody says
_memo = Memo()


@dataclass(frozen=True)
class Bounds:
    """A size of the workload, or an option of a mapper, that can be swept; with a range to start from."""

    kind: str
    least: int
    most: int
    first: int
    last: int


@dataclass(frozen=True)
class SweepChoices:
    """A request, or why the choices make none: ``wrong`` names the choices whose fields say it, ``refusal`` is a
    sentence that nothing else says."""

    request: SweepRequest | None
    refusal: str | None
    baseline: str | None
    needs: SweepForecast | None = None
    wrong: tuple[str, ...] = ()
    doubt: str | None = None


def choose(devices: tuple[str, ...]) -> SweepChoices:
    """Draw all choices but Run. ``devices`` is empty while the measuring process is starting."""
    workload = choose_workload(_workload_changed)
    known = sweepable(workload)
    with st.container(key="axes", gap="small", border=True):
        first, first_problem = _axis(1, known, None)
        second, second_problem = _axis(2, known, first["name"])
    axes = [first, *([second] if second else [])]
    problem = first_problem or second_problem
    swept = {axis["name"] for axis in axes if axis["kind"] == "size"}
    fields = _comparison({"workload": workload.slug})
    size, wrong = sizes(workload, fields, swept)
    options, wrong_options = workload_options(workload, fields)
    dtype, device, wrong_device = dtype_and_device(workload, devices)
    # Which strategies are usual, or thrifty, is asked at the sizes that the workload has where nobody chooses.
    case = Case(workload, size, dtype, options, device)
    chosen, unknown, advanced = compare.strategies_and_advanced(case, fields)
    baseline = compare.baseline(advanced)
    wrong = [*(["range"] if problem else []), *wrong, *wrong_options, *wrong_device, *advanced["wrong"]]
    if wrong or unknown or not chosen:
        unknown = unknown or (None if chosen else "Choose at least one strategy.")
        return SweepChoices(None, unknown, baseline, wrong=tuple(wrong))
    fixed = {name: value for name, value in size.items() if name not in swept}
    try:
        request = parse_sweep({**compare.raw_request(case, chosen, advanced), "size": fixed, "axes": axes})
    except RequestError as error:
        return SweepChoices(None, str(error), baseline)
    needs = _memo.get(
        (strategies.version(), repr(request)),
        lambda: forecast_sweep(request, environment.available_memory()),
    )
    if not needs.peak_bytes:  # nothing is left to measure
        reasons = [reason for _, reason in needs.skipped] or needs.strategies_left_out()
        return SweepChoices(None, f"No point of this can fit. {reasons[0]}", baseline)
    return SweepChoices(request, None, baseline, needs)


def sweepable(workload: Workload) -> dict[str, Bounds]:
    """Return everything that can be swept for a workload, sizes first."""
    by_name = {
        size.name: Bounds(
            "size", size.least, size.most, max(1, size.least), min(size.most, _TIMES_DEFAULT * max(1, size.default))
        )
        for size in workload.sizes
    }
    batch = workload.default_size()["batch"]
    for mapper in strategies.mappers():
        if not strategies.offered(mapper, workload):
            continue
        for option in mapper.options:
            if option.values is None and option.name not in by_name:
                least, most = option.least or 0, 2**31 - 1 if option.most is None else option.most
                last = _TIMES_DEFAULT * int(option.default) or batch
                by_name[option.name] = Bounds("option", least, most, max(1, least), min(most, last))
    return by_name


def _key(name: str, number: int) -> str:
    """Return the key of an axis' widget, and so its name in the address."""
    return name if number == 1 else f"{name}_{number}"


def _set_range(number: int, bounds: Bounds) -> None:
    st.session_state[_key("from", number)] = str(bounds.first)
    st.session_state[_key("to", number)] = str(bounds.last)
    st.session_state[_key("points", number)] = DEFAULT_POINTS[number]


def _workload_changed() -> None:
    start_with_defaults()
    known = sweepable(workloads.get(st.session_state["workload"]))
    st.session_state[_key("sweep", 1)] = next(iter(known))
    st.session_state[_key("sweep", 2)] = _NOTHING
    _set_range(1, next(iter(known.values())))


def _axis_changed(number: int, known: Mapping[str, Bounds]) -> None:
    name = st.session_state[_key("sweep", number)]
    if name in known:
        _set_range(number, known[name])


def _axis(number: int, known: Mapping[str, Bounds], taken: str | None) -> tuple[dict[str, Any], str | None]:
    """Draw one axis; return it as `parse_sweep` reads it, empty for none, and the fault of its range, which is shown
    here."""
    key = _key("sweep", number)
    offered = [name for name in known if name != taken]
    options = ", ".join(name for name in offered if known[name].kind == "option")
    if taken is not None:
        offered = _seconds(known, taken)
    if st.session_state.get(key, offered[0]) not in offered:
        st.session_state[key] = offered[0]
    name = st.selectbox(
        "Sweep" if number == 1 else "Second axis, for a map", offered, key=key,
        on_change=_axis_changed, args=(number, known),
        help=f"a size of the workload{f', or an option of strategies: {options}' if number == 1 and options else ''}",
    )  # fmt: skip
    if name == _NOTHING:
        return {}, None
    bounds = known[name]
    # Values that are no grid take the place of where it starts.
    listed = "," in st.session_state.get(_key("from", number), "")
    with st.container(horizontal=True, gap="small", key=f"range_{number}", vertical_alignment="bottom"):
        first = st.text_input(
            "Values" if listed else "From", value=str(bounds.first), key=_key("from", number),
            width=_LIST_WIDTH if listed else 90, help=f"from {bounds.least:,}; or the values themselves, as 1, 2, 8",
        )  # fmt: skip
        last = st.text_input(
            "To", value=str(bounds.last), key=_key("to", number), width=90,
            disabled=listed, help=f"to {bounds.most:,}",
        )  # fmt: skip
        points = st.number_input(
            "Points", value=DEFAULT_POINTS[number], step=1, key=_key("points", number), width=110,
            disabled=listed, help=f"from 2 to {MOST_POINTS}; further ones are measured where lines cross",
        )  # fmt: skip
        scale = st.segmented_control("Scale", SCALES, default=SCALES[0], key=_key("scale", number), required=True)
    text = f"{first.strip()}:{last.strip()}" if first.strip() or last.strip() else ""
    text = first if listed else text
    axis = {"kind": bounds.kind, "name": name, "range": text, "scale": scale, "points": points}
    problem = _problem(axis, bounds)
    if problem:
        st.warning(look.plain(problem), icon=":material/block:")
    return axis, problem


def _problem(axis: Mapping[str, Any], bounds: Bounds) -> str | None:
    try:
        parse_range(
            axis["range"], axis["scale"], axis["points"], name=axis["name"], least=bounds.least, most=bounds.most
        )
    except RequestError as error:
        return str(error)
    return None


# --- from and into an address ----------------------------------------------------------------------------------------

_comparison = partial(address.fields, words=grid.usual, budget_s=DEFAULT_BUDGET_S)


def fields(form: Mapping[str, Any]) -> dict[str, Field]:
    """Return the fields of a sweep that are known with these choices, as `address.Fields` are."""
    known = _comparison(form)
    if "workload" not in form:
        return known
    swept = sweepable(workloads.get(form["workload"]))
    return known | _axis_fields(1, swept, form) | _axis_fields(2, swept, form)


def _axis_fields(number: int, swept: Mapping[str, Bounds], form: Mapping[str, Any]) -> dict[str, Field]:
    first, name = form.get(_key("sweep", 1)), form.get(_key("sweep", number))
    offered = list(swept) if number == 1 else _seconds(swept, first)
    if number == 2 and first is None:
        return {}
    within = ("workload", *(_key("sweep", other) for other in range(1, number + 1)))
    known = {_key("sweep", number): Field(offered[0], address.one_of("sweep", offered), within=within[:-1])}
    if name is None or name not in swept:
        return known
    bounds = swept[name]
    return known | {
        _key("from", number): Field(str(bounds.first), address.text, within=within),
        _key("to", number): Field(str(bounds.last), address.text, within=within),
        _key("points", number): Field(DEFAULT_POINTS[number], address.whole("points"), within=within),
        _key("scale", number): Field(SCALES[0], address.one_of("scale", SCALES), within=within),
    }


def _seconds(swept: Mapping[str, Bounds], first: str | None) -> list[str]:
    """Return what can be swept beside the first axis."""
    # A map of winners is over two sizes: at one value of an option there is a winner of those that have it only.
    sizes = [name for name, bounds in swept.items() if bounds.kind == "size" and name != first]
    return [_NOTHING, *(sizes if first is not None and swept[first].kind == "size" else [])]


def of_run(run: Run) -> Form:
    """Return the form of a sweep, which would measure the same points again; empty where it cannot be asked for
    here."""
    try:
        request = request_of_run(run)
    except (RequestError, ValueError):
        return {}
    form = address.of_request(request.base.record()) | {_key("sweep", 2): _NOTHING}
    for number, axis in enumerate(request.axes, 1):
        form.pop(size_key(axis.name), None)
        points = _points(axis)
        form |= {
            _key("sweep", number): axis.name,
            _key("from", number): str(axis.values[0]) if points else ", ".join(map(str, axis.values)),
            _key("to", number): str(axis.values[-1]),
            _key("points", number): points or len(axis.values),
            _key("scale", number): axis.scale,
        }
    return form


def _points(axis: Axis) -> int | None:
    """Return the number of points of the grid that has these values, which is more than there are values where some
    coincide as whole numbers; None where the axis is a list."""
    text = f"{axis.values[0]}:{axis.values[-1]}"
    for points in (DEFAULT_POINTS[1], DEFAULT_POINTS[2], *range(len(axis.values), MOST_POINTS + 1)):
        try:
            grid = parse_range(text, axis.scale, points, name=axis.name)
        except RequestError:
            return None
        if grid == axis.values:
            return points
    return None
