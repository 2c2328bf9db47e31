"""The choices of a sweep: one or two axes with their ranges, and everything that stays the same."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

import strategies
import workloads
from measure import admission
from measure.run.fit import SweepForecast
from measure.run.request import RequestError
from measure.run.run import Run
from measure.run.sweep_request import (
    DEFAULT_BUDGET_S,
    MOST_POINTS,
    SCALES,
    SweepRequest,
    parse_range,
    parse_sweep,
)
from measure.run.sweep_request import of_run as request_of_run
from views.choices import address, compare, ranges, texts
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
from views.choices.ranges import Bounds, Range, sweepable
from views.choices.summary import NOTHING
from views.ui import look
from views.ui.memo import Memo
from views.ui.parameters import size_key
from workloads.case import Case
from workloads.spec import Workload

# The fields of a range, and those of the first axis as they were set last, not by a person.
_RANGE = ("from", "to", "points")
_STARTED = "range_started"
_LIST_WIDTH = 220  # pixels
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
    known = sweepable(workload)
    with st.container(key="axes", gap="small", border=True):
        first, first_problem = _axis(1, known, None)
        second, second_problem = _axis(2, known, first["name"])
    axes = [first, *([second] if second else [])]
    problem = first_problem or second_problem
    swept = {axis["name"] for axis in axes if axis["kind"] == "size"}
    drawn = {"workload": workload.slug, **{_key("sweep", number): axis["name"] for number, axis in enumerate(axes, 1)}}
    of_page = fields({_key("sweep", 2): NOTHING, **drawn})
    size, wrong = sizes(workload, of_page, swept)
    options, wrong_options = workload_options(workload, of_page)
    dtype, device, wrong_device = dtype_and_device(workload, devices)
    # Which strategies are usual, or thrifty, is asked at the sizes that the workload has where nobody chooses.
    case = Case(workload, size, dtype, options, device)
    chosen, unknown, advanced = compare.strategies_and_advanced(case, of_page)
    baseline = compare.baseline(advanced)
    wrong = [*([texts.WRONG_RANGE] if problem else []), *wrong, *wrong_options, *wrong_device, *advanced["wrong"]]
    if wrong or unknown or not chosen:
        unknown = unknown or (None if chosen else texts.NONE_CHOSEN)
        return SweepChoices(None, unknown, baseline, wrong=tuple(wrong))
    fixed = {name: value for name, value in size.items() if name not in swept}
    try:
        request = parse_sweep({**compare.raw_request(case, chosen, advanced), "size": fixed, "axes": axes})
    except RequestError as error:
        return SweepChoices(None, str(error), baseline)
    needs = _memo.get(
        (strategies.version(), repr(request)),
        lambda: admission.sweep_needs(request),
    )
    if not needs.peak_bytes:  # nothing is left to measure
        return SweepChoices(None, texts.NOTHING_FITS.format(reason=needs.skipped[0][1]), baseline)
    return SweepChoices(request, None, baseline, needs)


def _key(name: str, number: int) -> str:
    """Return the key of an axis' widget, and so its name in the address."""
    return name if number == 1 else f"{name}_{number}"


def _workload_changed() -> None:
    start_with_defaults()
    st.session_state[_key("sweep", 1)] = next(iter(sweepable(workloads.get(st.session_state["workload"]))))
    st.session_state[_key("sweep", 2)] = NOTHING
    _axis_changed(1)


def _axis_changed(number: int) -> None:
    """Set what to start from with what is swept now; beside another second size, the first keeps a range that a person
    has set."""
    workload = workloads.get(st.session_state["workload"])
    known, first = sweepable(workload), st.session_state[_key("sweep", 1)]
    if st.session_state.get(_key("sweep", 2)) not in _seconds(known, first):
        st.session_state[_key("sweep", 2)] = NOTHING
    names = _swept(st.session_state)
    own = tuple(st.session_state.get(key) for key in _RANGE)
    alone = _as_fields(ranges.start(workload, [first])[first])
    kept = number == 2 and own not in (st.session_state.get(_STARTED), alone)
    for place, wanted in enumerate(ranges.start(workload, names).values(), 1):
        if place == 2 or not kept:
            for key, value in zip(_RANGE, _as_fields(wanted), strict=True):
                st.session_state[_key(key, place)] = value
    if not kept:
        st.session_state[_STARTED] = tuple(st.session_state[key] for key in _RANGE)
    if known[first].kind == "option":
        _choose_having(workload, first)


def _as_fields(wanted: Range) -> tuple[str, str, int]:
    """Return the values of the fields of a range."""
    return str(wanted.first), str(wanted.last), wanted.points


def _choose_having(workload: Workload, option: str) -> None:
    """Choose strategies that have a swept option, where none of the chosen ones has it."""
    having = ranges.having(workload, option)
    chosen = [word for word in st.session_state.get("strategies", []) if word != NONE]
    mappers = {strategies.parse(slug).mapper for slug in having}
    if not any(word in WORDS or word.partition(".")[0] in mappers for word in chosen):
        st.session_state["strategies"] = [*chosen, *having]


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
    help_ = texts.FIRST_AXIS_OPTIONS_HELP.format(options=options) if options else texts.FIRST_AXIS_HELP
    name = st.selectbox(
        texts.FIRST_AXIS if number == 1 else texts.SECOND_AXIS, offered, index=place_of(key, offered), key=key,
        on_change=_axis_changed, args=(number,),
        format_func=lambda name: texts.NO_VALUE if name == NOTHING else name,
        help=help_ if number == 1 else texts.SECOND_AXIS_HELP,
    )  # fmt: skip
    if name == NOTHING:
        return {}, None
    bounds = known[name]
    # Values that are no grid take the place of where it starts.
    listed = "," in st.session_state.get(_key("from", number), "")
    with st.container(horizontal=True, gap="small", key=f"range_{number}", vertical_alignment="bottom"):
        first = st.text_input(
            texts.LISTED_VALUES if listed else texts.FROM, value=current(_key("from", number), ""),
            key=_key("from", number), width=_LIST_WIDTH if listed else 90,
            help=texts.FROM_HELP.format(least=bounds.least),
        )  # fmt: skip
        last = st.text_input(
            texts.TO, value=current(_key("to", number), ""), key=_key("to", number), width=90,
            disabled=listed, help=texts.TO_HELP.format(most=bounds.most),
        )  # fmt: skip
        points = st.number_input(
            texts.POINTS, value=current(_key("points", number), 2), step=1, key=_key("points", number), width=110,
            disabled=listed, help=texts.POINTS_HELP.format(most=MOST_POINTS),
        )  # fmt: skip
        scale = st.segmented_control(
            texts.SCALE,
            SCALES,
            default=current(_key("scale", number), SCALES[0]),
            key=_key("scale", number),
            required=True,
        )
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


def fields(form: Mapping[str, Any]) -> dict[str, Field]:
    """Return the fields of a sweep that are known with these choices, as `address.Fields` are."""
    known = address.fields(form, budget_s=DEFAULT_BUDGET_S)
    if "workload" not in form:
        return known
    workload = workloads.get(form["workload"])
    can_be = sweepable(workload)
    usual = known.pop("strategies")
    offered = {_key("sweep", 1): list(can_be)}
    if _key("sweep", 1) in form:
        offered[_key("sweep", 2)] = _seconds(can_be, form[_key("sweep", 1)])
    within = ("workload", *offered)
    for place, (key, names) in enumerate(offered.items(), 1):
        known[key] = Field(names[0], address.one_of("sweep", names), within=within[:place])
    if not offered.keys() <= form.keys() or len(offered) == 1:
        return known
    # Ranges and strategies to start from depend on all that is swept.
    names = _swept(form)
    known["strategies"] = replace(usual, default=ranges.words(workload, names), within=within)
    for number, wanted in enumerate(ranges.start(workload, names).values(), 1):
        first, last, points = _as_fields(wanted)
        known |= {
            _key("from", number): Field(first, address.text, within=within),
            _key("to", number): Field(last, address.text, within=within),
            _key("points", number): Field(points, address.whole("points"), within=within),
            _key("scale", number): Field(SCALES[0], address.one_of("scale", SCALES), within=within),
        }
    return known


def _swept(form: Any) -> list[str]:
    """Return the names of what a form sweeps."""
    return [form[key] for key in (_key("sweep", 1), _key("sweep", 2)) if form[key] != NOTHING]


def _seconds(swept: Mapping[str, Bounds], first: str) -> list[str]:
    """Return what can be swept beside the first axis."""
    # A map of winners is over two sizes: at one value of an option there is a winner of those that have it only.
    sizes = [name for name, bounds in swept.items() if bounds.kind == "size" and name != first]
    return [NOTHING, *(sizes if swept[first].kind == "size" else [])]


def of_run(run: Run) -> Form:
    """Return the form of a sweep, which would measure the same points again; empty where it cannot be asked for
    here."""
    try:
        return form_of(request_of_run(run))
    except (RequestError, ValueError):
        return {}


def form_of(request: SweepRequest) -> Form:
    """Return the form that asks for this."""
    form = address.of_request(request.base.record()) | {_key("sweep", 2): NOTHING}
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
