"""The axes of a sweep: what can be swept, the ranges and strategies to start from, and the widgets that choose them."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import streamlit as st
from msgspec import structs

import strategies
import workloads
from measure.run.fit import forecast_sweep
from measure.run.request import RequestError
from measure.run.run import Axis
from measure.run.sweep_request import DEFAULT_POINTS, MOST_POINTS, SCALES, SweepRequest, parse_range, parse_sweep
from views.choices import grid
from views.ui.memo import Memo
from workloads.spec import Option, SizeParameter, Workload

# In place of a second size, where one is swept alone.
NOTHING = "nothing"
# A range reaches to ten times a default, or to one of these shares of it, with fewer points the narrower it is.
_SHARES, _FEWEST_POINTS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001), 3
# A machine with this much memory can measure all of it. The same everywhere: an address does not say what is the
# default, and has to mean the same on another machine.
MODEST_BYTES = 4 * 2**30
_memo = Memo(__name__)


def keyed(name: str, place: int) -> str:
    return name if place == 1 else f"{name}_{place}"


def swept(form: Mapping[Any, Any]) -> list[str]:
    return [form[key] for key in ("sweep", "sweep_2") if form[key] != NOTHING]


def form_of(axis: Axis, place: int) -> dict[str, Any]:
    """Return the choices that make the values of an axis: the ends and the points of a grid, or a list."""
    first, last = str(axis.values[0]), str(axis.values[-1])
    # A grid has more points than values where some coincide as whole numbers.
    for points in (DEFAULT_POINTS[1], DEFAULT_POINTS[2], *range(len(axis.values), MOST_POINTS + 1)):
        if parse_range(f"{first}:{last}", axis.scale, points) == axis.values:
            break
    else:
        first, points = ", ".join(map(str, axis.values)), len(axis.values)
    parts = {"from": first, "to": last, "points": points, "scale": axis.scale}
    return {keyed(name, place): value for name, value in parts.items()}


# --- what can be swept, and from where to where ----------------------------------------------------------------------


def sweepable(workload: Workload) -> dict[str, SizeParameter | Option]:
    """Return everything that can be swept for a workload by its name: its sizes, then options of numbers of mappers."""
    offered = [mapper for mapper in strategies.mappers() if not strategies.missing(mapper, workload)]
    items: dict[str, SizeParameter | Option] = {size.name: size for size in workload.sizes}
    for option in [option for mapper in offered for option in mapper.options if option.values is None]:
        items.setdefault(option.name, option)
    return items


def bounds(item: SizeParameter | Option) -> tuple[int, int]:
    return item.least or 0, 2**31 - 1 if item.most is None else item.most


def _kind(item: SizeParameter | Option) -> Literal["size", "option"]:
    return "option" if isinstance(item, Option) else "size"


def seconds(workload: Workload, first: str) -> list[str]:
    """Return what can be swept beside the first axis: another size, since at one value of an option only those that
    have it could win."""
    sizes = [size.name for size in workload.sizes]
    return [NOTHING, *(name for name in sizes if first in sizes and name != first)]


def having(workload: Workload, option: str) -> list[str]:
    """Return a strategy of each usual mapper that has an option; none for a size."""
    return [
        f"{mapper.slug}.{'graph' if 'graph' in mapper.modes else mapper.modes[0]}"
        for mapper in strategies.mappers()
        if not strategies.missing(mapper, workload)
        and mapper.default_modes
        and option in [offered.name for offered in mapper.options]
    ]


def words(workload: Workload, names: Sequence[str]) -> list[str]:
    """Return the strategies to start from where these are swept: the usual ones, and those that have a swept option."""
    usual = grid.usual(workload)
    for name in names:
        further = having(workload, name)
        if not set(further) & set(usual):
            usual += further
    return usual


def start(workload: Workload, names: Sequence[str]) -> tuple[Axis, ...]:
    """Return the ranges to start from where these are swept together: the widest of which the default budget, and
    modest memory, leave nothing out; the narrowest where none is so."""
    return _memo.get((strategies.version(), workload.slug, *names), lambda: _start(workload, names))


def _start(workload: Workload, names: Sequence[str]) -> tuple[Axis, ...]:
    items, axes, most_points = sweepable(workload), list[Axis](), DEFAULT_POINTS[len(names)]
    for step, share in enumerate(_SHARES):
        points = max(_FEWEST_POINTS, most_points - (step + 1) // 2)
        axes = []
        for name in names:
            item = items[name]
            least, most = bounds(item)
            # An option that is left to the mapper may be as large as the batch.
            usual = int(item.default) or (workload.default_size()["batch"] / 10 if isinstance(item, Option) else 1)
            first = max(1, least)
            values = parse_range(f"{first}:{max(first + 1, min(most, round(10 * share * usual)))}", points=points)
            axes.append(Axis(kind=_kind(item), name=name, values=values, scale="log"))
        asked = {"workload": workload.slug, "strategies": words(workload, names), "axes": [*map(structs.asdict, axes)]}
        with contextlib.suppress(RequestError):  # a size with a single valid value
            if fits(parse_sweep(asked)):
                break
    return tuple(axes)


def fits(request: SweepRequest) -> bool:
    """True if by forecast a sweep leaves nothing out on a machine with modest memory."""
    needs = forecast_sweep(request, MODEST_BYTES)
    return not (needs.skipped or needs.too_long) and needs.peak_bytes <= MODEST_BYTES


# --- widgets ---------------------------------------------------------------------------------------------------------


def draw(workload: Workload) -> list[dict[str, Any]]:
    """Draw one or two axes, and return them as `parse_sweep` reads them."""
    items, axes = sweepable(workload), list[dict[str, Any]]()
    options = " or ".join(name for name, item in items.items() if isinstance(item, Option))
    helps = (
        f"A size of the workload{f', or an option of strategies: {options}' if options else ''}.",
        "Two sizes make a map: who is fastest at each pair of them.",
    )
    with st.container(key="axes", gap="small", border=True):
        for place, label in enumerate(("Sweep", "Second size"), 1):
            key, offered = keyed("sweep", place), seconds(workload, axes[0]["name"]) if axes else list(items)
            if st.session_state.get(key) not in offered:
                st.session_state[key] = offered[0]
            name = st.selectbox(
                label, offered, index=offered.index(st.session_state[key]), key=key, on_change=_changed,
                format_func=lambda name: "none" if name == NOTHING else name, help=helps[place - 1],
            )  # fmt: skip
            if name != NOTHING:
                axes.append(_range(place, items[name]))
    return axes


def _range(place: int, item: SizeParameter | Option) -> dict[str, Any]:
    state, (least, most) = st.session_state, bounds(item)
    start, end, points, scale = (keyed(part, place) for part in ("from", "to", "points", "scale"))
    # Values that are no grid take the place of where it starts.
    listed = "," in str(state.get(start, ""))
    with st.container(horizontal=True, gap="small", key=f"range_{place}", vertical_alignment="bottom"):
        first = st.text_input(
            "Values" if listed else "From", value=state.get(start, ""), key=start, width=220 if listed else 90,
            help=f"from {least:,}; or the values themselves, as 1, 2, 8",
        )  # fmt: skip
        last = st.text_input("To", value=state.get(end, ""), key=end, width=90, disabled=listed, help=f"to {most:,}")
        count = st.number_input(
            "Points", value=state.get(points, 2), step=1, key=points, width=110, disabled=listed,
            help=f"from 2 to {MOST_POINTS}",
        )  # fmt: skip
        spaced = st.segmented_control("Scale", SCALES, default=state.get(scale, SCALES[0]), key=scale, required=True)
    ends = f"{first.strip()}:{last.strip()}" if first.strip() or last.strip() else ""
    chosen = {"range": first if listed else ends, "scale": spaced, "points": count}
    return {"kind": _kind(item), "name": item.name, **chosen}


def _changed() -> None:
    """Set what to start from with what is swept now."""
    state, workload = st.session_state, workloads.get(st.session_state["workload"])
    first = state["sweep"]
    if first not in sweepable(workload):  # a browser may send what is not in the list
        return
    if state.get("sweep_2") not in seconds(workload, first):
        state["sweep_2"] = NOTHING
    for place, axis in enumerate(start(workload, swept(state)), 1):
        state.update(form_of(axis, place))
    # None of the chosen strategies may have the option that is swept.
    further = having(workload, first) if first not in workload.default_size() else []
    chosen = [word for word in state.get("strategies", []) if word != grid.NONE]
    mappers = {slug.partition(".")[0] for slug in further}
    if further and not any(word in grid.WORDS or word.partition(".")[0] in mappers for word in chosen):
        state["strategies"] = [*chosen, *further]
