"""The request of a sweep: one or two axes over a comparison's, validated once for page, link, file and command."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from msgspec import structs

import strategies
from measure.model.request import (
    Request,
    RequestError,
    parse,
    parse_dtype,
    parse_options,
    parse_strategies,
    parse_workload,
)
from measure.model.run import MOST_CELLS, MOST_POINTS, Axis, Run
from workloads.case import Case
from workloads.spec import Option, SizeParameter, Workload

# Seconds for a whole sweep: a grid of nine points and six strategies at default sizes, and refining its crossings.
DEFAULT_BUDGET_S = 60.0
DEFAULT_POINTS = {1: 9, 2: 5}  # points of an axis, by the number of axes
SCALES = ("log", "linear")


@dataclass(frozen=True)
class SweepRequest:
    """A valid sweep: make one with `parse_sweep`. ``base`` is the comparison at the smallest point; its strategies
    leave a swept option open."""

    base: Request
    axes: tuple[Axis, ...]

    def points(self) -> list[dict[str, int]]:
        """The points of the grid: every combination of the axes' values, the first axis slowest."""
        names = [axis.name for axis in self.axes]
        return [dict(zip(names, values, strict=True)) for values in product(*(axis.values for axis in self.axes))]

    def comparison(self, at: Mapping[str, int]) -> Request:
        """The comparison of one point. A strategy that a swept option does not concern has a part at that axis' first
        value only, so that nothing is measured twice."""
        sizes = {axis.name: at[axis.name] for axis in self.axes if axis.kind == "size"}
        chosen = [slug for line, slug in self.slugs(at).items() if self._takes_part(line, at)]
        return structs.replace(self.base, size={**self.base.size, **sizes}, strategies=chosen)

    def slugs(self, at: Mapping[str, int]) -> dict[str, str]:
        """Line → the strategy that it is at a point: the line's slug leaves a swept option out, as its value is the
        point's."""
        return {line: self._at(line, at) for line in self.base.strategies}

    def _at(self, line: str, at: Mapping[str, int]) -> str:
        strategy = strategies.parse(line)
        values = {axis.name: at[axis.name] for axis in self.axes if axis.kind == "option"}
        own = {option.name: option.default for option in strategies.mapper(strategy.mapper).options}
        changed = {name: value for name, value in values.items() if name in own and value != own[name]}
        return replace(strategy, options=dict(sorted({**strategy.options, **changed}.items()))).slug

    def _takes_part(self, line: str, at: Mapping[str, int]) -> bool:
        return all(
            axis.kind == "size" or at[axis.name] == axis.values[0] or _option(line, axis.name) is not None
            for axis in self.axes
        )


def parse_sweep(raw: Mapping[str, Any]) -> SweepRequest:
    """A valid `SweepRequest` from the keys of a comparison's request, and ``axes``: a list of mappings with ``name``,
    ``values`` or ``range`` (as `parse_range` reads it), and if wanted ``kind``, ``scale`` and ``points``.

    Raises `RequestError` with one sentence. Strategies named by ``default`` are those of the smallest point, so that
    those which are hopeless at the large end take part where they are not.
    """
    plain = {name: value for name, value in raw.items() if name != "axes"}
    if "workload" not in plain:
        parse(plain)  # says what is missing
    workload = parse_workload(plain["workload"])
    given = _axes_given(raw.get("axes"))
    size = plain.get("size")
    if size is not None and not isinstance(size, Mapping):
        parse(plain)
    for raw_axis in given:
        if raw_axis.get("kind", "size") == "size" and raw_axis.get("name") in (size or {}):
            raise RequestError(f"{raw_axis['name']} is both fixed and swept: give it one value, or a range")
    lines = _lines(workload, plain)
    axes = tuple(_axis(workload, lines, raw_axis, len(given)) for raw_axis in given)
    if len(axes) == 2 and axes[0].name == axes[1].name:
        raise RequestError(f"{axes[0].name} is swept twice: two axes need two names")
    if len(axes) == 2 and (options := [axis.name for axis in axes if axis.kind == "option"]):
        raise RequestError(
            f"{options[0]} is an option of strategies, which is swept alone: two axes need two sizes of the workload"
        )
    cells = math.prod(len(axis.values) for axis in axes)
    if cells > MOST_CELLS:
        raise RequestError(f"{cells} points are too many: a sweep has at most {MOST_CELLS}")
    plain.setdefault("budget_s", DEFAULT_BUDGET_S)
    plain["budget_s"] = DEFAULT_BUDGET_S if plain["budget_s"] is None else plain["budget_s"]

    def end(place: int) -> dict[str, int]:
        return {**(size or {}), **{axis.name: axis.values[place] for axis in axes if axis.kind == "size"}}

    base = parse({**plain, "size": end(0)})
    # What no machine holds is refused; what this one cannot, and what a memory limit forbids, is marked at its point.
    parse({**plain, "size": end(-1), "strategies": list(base.strategies), "memory_limit_mib": None})
    for axis in axes:
        if axis.kind == "option":
            _look_at_strategies(axis, base.strategies)
    return SweepRequest(base, axes)


def parse_range(
    text: str,
    scale: str = "log",
    points: int | None = None,
    *,
    name: str = "range",
    least: int = 0,
    most: int = 2**31 - 1,
) -> list[int]:
    """The grid that ``1:100000``, ``1:100000:9`` (so many points) or ``1,2,8`` stands for, ascending.

    Raises `RequestError` with one sentence.
    """
    what = f"{name}={text}"
    if ":" not in text:
        if not text.strip():
            raise RequestError(f"{name} is empty: write a range as 1:1000, or values as 1,2,8")
        return _checked(name, text.split(","), scale, least, most)
    parts = [part.strip() for part in text.split(":")]
    if len(parts) not in (2, 3) or not all(re.fullmatch(r"[+-]?\d{1,18}", part) for part in parts):
        raise RequestError(f"{what} is not valid: whole numbers are needed, as in 1:1000 or, with 9 points, 1:1000:9")
    first, last = int(parts[0]), int(parts[1])
    count = int(parts[2]) if len(parts) == 3 else DEFAULT_POINTS[1] if points is None else points
    if first > last:
        raise RequestError(f"{what} is reversed: write the smaller end first, {name}={last}:{first}")
    if first == last:
        raise RequestError(f"{what} is one point: a sweep needs at least two; for one size use a comparison")
    if not 2 <= count <= MOST_POINTS:
        raise RequestError(f"{what} with {count} points is not valid: from 2 to {MOST_POINTS} are")
    _look_at_bounds(name, (first, last), scale, least, most)
    return _grid(first, last, count, scale)


def of_run(run: Run) -> SweepRequest:
    """The request of a stored sweep; RequestError where it can no longer be."""
    if run.kind != "sweep":
        raise RequestError(f"run {run.id} is a comparison: only a sweep can be continued")
    record = run.request
    plain = structs.asdict(record) | {"allocator": record.allocator or "default"}
    swept = [axis.name for axis in run.axes if axis.kind == "size"]
    plain["size"] = {name: value for name, value in record.size.items() if name not in swept}
    axes = [{name: getattr(axis, name) for name in axis.__struct_fields__} for axis in run.axes]
    return parse_sweep({**plain, "axes": axes})


# --- parts -----------------------------------------------------------------------------------------------------------

_FIELDS = ("kind", "name", "values", "range", "scale", "points")


def _axes_given(value: Any) -> list[Mapping[str, Any]]:
    if value is not None and not (isinstance(value, list | tuple) and all(isinstance(axis, Mapping) for axis in value)):
        raise RequestError(f"axes={value!r} is not valid: a list of axes is needed, each with its name and range")
    if not value:
        raise RequestError("nothing is swept: give a range for a size, as batch=1:1000, or for an option of a strategy")
    if len(value) > 2:
        raise RequestError(f"{len(value)} axes are too many: a sweep has one or two")
    for axis in value:
        for field in axis:
            if field not in _FIELDS:
                raise RequestError(f"an axis has no field {field!r}: its fields are {', '.join(_FIELDS)}")
    return list(value)


def _lines(workload: Workload, plain: Mapping[str, Any]) -> list[str]:
    """The strategies, as far as they are known before the sizes are."""
    options = parse_options(workload, plain.get("workload_options"))
    chosen = plain.get("strategies")
    if chosen is not None and not isinstance(chosen, str | list | tuple):
        parse(plain)
    dtype = parse_dtype(workload, plain.get("dtype"))
    chosen = "default" if chosen is None else chosen
    return parse_strategies(Case(workload, workload.default_size(), dtype, options), chosen)


def _axis(workload: Workload, lines: Sequence[str], raw: Mapping[str, Any], axes: int) -> Axis:
    kind, name = raw.get("kind", "size"), str(raw.get("name", ""))
    if kind not in ("size", "option"):
        raise RequestError(f"axis kind {kind!r} is not valid: size or option is")
    scale: Any = raw.get("scale") or "log"
    if scale not in SCALES:
        raise RequestError(f"scale {scale!r} is not valid: {' or '.join(SCALES)} is")
    bounds = _size(workload, name) if kind == "size" else _option_of(lines, name)
    least = bounds.least or 0
    most = bounds.most if bounds.most is not None else 2**31 - 1
    points = DEFAULT_POINTS[axes] if raw.get("points") is None else raw["points"]
    if isinstance(points, bool) or not re.fullmatch(r"\d{1,9}", str(points)):
        raise RequestError(f"points={points} is not valid: a whole number from 2 to {MOST_POINTS} is needed")
    values, text = raw.get("values"), raw.get("range")
    if (values is None) == (text is None):
        raise RequestError(f"axis {name} needs either values or a range")
    if text is not None:
        grid = parse_range(str(text), scale, int(points), name=name, least=least, most=most)
    elif isinstance(values, list | tuple):
        grid = _checked(name, values, scale, least, most)
    else:
        raise RequestError(f"{name}={values!r} is not valid: a list of whole numbers is needed")
    return Axis(kind=kind, name=name, values=grid, scale=scale)


def _size(workload: Workload, name: str) -> SizeParameter:
    for parameter in workload.sizes:
        if parameter.name == name:
            return parameter
    names = ", ".join(parameter.name for parameter in workload.sizes)
    raise RequestError(f"{workload.slug} has no size {name!r}: its sizes are {names}")


def _option(line: str, name: str) -> Option | None:
    options = strategies.mapper(strategies.parse(line).mapper).options
    return next((option for option in options if option.name == name), None)


def _option_of(lines: Iterable[str], name: str) -> Option:
    known: dict[str, Option] = {}
    for line in lines:
        for option in strategies.mapper(strategies.parse(line).mapper).options:
            if option.values is None:
                known.setdefault(option.name, option)
    if name not in known:
        other = f", or sweep {' or '.join(known)}" if known else ""
        raise RequestError(f"no chosen strategy has an option {name!r} of numbers: choose one that has it{other}")
    return known[name]


def _look_at_strategies(axis: Axis, lines: Sequence[str]) -> None:
    """Refuse a swept option that a strategy's slug gives already."""
    for line in lines:
        if axis.name in strategies.parse(line).options:
            raise RequestError(f"{line} gives {axis.name} itself: leave it out there, or do not sweep it")


def _checked(name: str, values: Iterable[Any], scale: str, least: int, most: int) -> list[int]:
    """Values that were written one by one, each once, ascending."""
    numbers = set()
    for value in values:
        if isinstance(value, bool) or not re.fullmatch(r"\s*[+-]?\d{1,18}\s*", str(value)):
            raise RequestError(f"{name}={value} is not valid: a whole number from {least} to {most} is needed")
        numbers.add(int(value))
    if not numbers:
        raise RequestError(f"{name} is empty: write a range as 1:1000, or values as 1,2,8")
    if len(numbers) == 1:
        raise RequestError(
            f"{name}={min(numbers)} is one point: a sweep needs at least two; for one size use a comparison"
        )
    if len(numbers) > MOST_POINTS:
        raise RequestError(f"{len(numbers)} values of {name} are too many: an axis has at most {MOST_POINTS}")
    _look_at_bounds(name, numbers, scale, least, most)
    return sorted(numbers)


def _look_at_bounds(name: str, values: Iterable[int], scale: str, least: int, most: int) -> None:
    for value in values:
        if not least <= value <= most:
            raise RequestError(f"{name}={value} is not valid: a whole number from {least} to {most} is needed")
        if scale == "log" and value < 1:
            raise RequestError(f"{name}={value} has no place on a log scale: start at 1, or choose the linear scale")


def _grid(first: int, last: int, count: int, scale: str) -> list[int]:
    """Grid points; those that coincide as whole numbers are one."""
    if scale == "log":
        ratio = math.log(last / first)
        places = [first * math.exp(ratio * number / (count - 1)) for number in range(count)]
    else:
        places = [first + (last - first) * number / (count - 1) for number in range(count)]
    return sorted({first, last, *(round(place) for place in places[1:-1])})
