"""The request of a sweep: one or two axes over a comparison's, validated once for page, link, file and command."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, get_args

import msgspec
import numpy as np

import strategies
from measure.run.request import AUTO, Request, RequestError, named, parse, parse_workload
from measure.run.run import MOST_CELLS, MOST_MEASUREMENTS, MOST_POINTS, Axis, Run
from measure.run.slugs import with_options
from workloads.spec import Option

# Seconds for a whole sweep: a grid of nine points and six strategies at default sizes.
DEFAULT_BUDGET_S = 60.0
DEFAULT_POINTS = {1: 9, 2: 5}  # points of an axis, by the number of axes
Scale = Literal["log", "linear"]
SCALES: tuple[Scale, ...] = get_args(Scale)
_MOST = 2**31 - 1


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
        """The comparison of one point. A strategy that a swept option does not concern has a part at the first value
        only, so that nothing is measured twice."""
        axis = self.axes[0]
        if axis.kind == "size":
            return msgspec.structs.replace(self.base, size={**self.base.size, **at})
        value, slugs = at[axis.name], []
        for line in self.base.strategies:
            if axis.name in _options(line):
                slugs.append(strategies.parse(with_options(line, {axis.name: value})).slug)
            elif value == axis.values[0]:
                slugs.append(line)
        return msgspec.structs.replace(self.base, strategies=slugs)


class _AxisGiven(msgspec.Struct, forbid_unknown_fields=True):
    """An axis as somebody asks for it: its ``values``, or a ``range``."""

    name: str
    kind: Literal["size", "option"] = "size"
    values: list[int] | None = None
    range: str | None = None
    scale: Scale | None = None
    points: int | None = None

    def axis(self, count: int, least: int, most: int) -> Axis:
        """The axis, of so many, with whole numbers from ``least`` to ``most``."""
        text = ",".join(map(str, self.values or ())) if self.range is None else self.range
        scale, points = self.scale or "log", DEFAULT_POINTS[count] if self.points is None else self.points
        values = parse_range(text, scale, points, name=self.name, least=least, most=most)
        return Axis(kind=self.kind, name=self.name, values=values, scale=scale)


def parse_sweep(raw: Mapping[str, Any]) -> SweepRequest:
    """A valid `SweepRequest` from the keys of a comparison's request, and ``axes``: a list of mappings with ``name``,
    ``values`` or ``range`` (as `parse_range` reads it), and if wanted ``kind``, ``scale`` and ``points``. Strategies
    named by ``default`` are those of the smallest point, so that those which are hopeless at the large end take part
    where they are not. Raises `RequestError` with one sentence."""
    given, asked = _axes_given(raw.get("axes")), {name: value for name, value in raw.items() if name != "axes"}
    if asked.get("budget_s") in (None, AUTO):
        asked["budget_s"] = DEFAULT_BUDGET_S
    axes: tuple[Axis, ...]
    if given[0].kind == "option":
        base = parse(asked)
        option = _option(base.strategies, given[0].name)
        axes = (given[0].axis(1, option.least or 0, option.most or _MOST),)
    else:
        workload = parse_workload(asked.get("workload"))
        sizes = {size.name: size for size in workload.sizes}
        named(workload, "size", {axis.name: axis for axis in given}, list(sizes))
        axes = tuple(axis.axis(len(given), sizes[axis.name].least, sizes[axis.name].most) for axis in given)
        if (points := math.prod(len(axis.values) for axis in axes)) > MOST_CELLS:
            raise RequestError(f"{points} points are too many: a sweep has at most {MOST_CELLS}")
        fixed = named(workload, "size", asked.get("size"), list(sizes))
        for axis in axes:
            if axis.name in fixed:
                raise RequestError(f"{axis.name} is both fixed and swept: give it one value, or a range")
        base = parse({**asked, "size": {**fixed, **{axis.name: axis.values[0] for axis in axes}}})
    cells = len(base.strategies) * math.prod(len(axis.values) for axis in axes)
    if cells > (most := MOST_MEASUREMENTS[len(axes)]):
        raise RequestError(f"{cells:,} strategies × points are too many: such a sweep has at most {most:,}")
    return SweepRequest(base, axes)


def parse_range(
    text: str, scale: str = "log", points: int | None = None, *, name: str = "range", least: int = 0, most: int = _MOST
) -> list[int]:
    """The grid that ``1:100000``, ``1:100000:9`` (so many points) or ``1,2,8`` stands for, ascending. Raises
    `RequestError` with one sentence."""
    is_grid = ":" in text
    try:
        numbers = [int(part) for part in text.split(":" if is_grid else ",")]
    except ValueError:
        numbers = []
    if not numbers or (is_grid and len(numbers) > 3):
        raise RequestError(f"{name}={text} is not valid: whole numbers are needed, as in 1:1000, 1:1000:9 or 1,2,8")
    for number in numbers[:2] if is_grid else numbers:
        if not least <= number <= most:
            raise RequestError(f"{name}={number} is not valid: a whole number from {least} to {most} is needed")
        if scale == "log" and number < 1:
            raise RequestError(f"{name}={number} has no place on a log scale: start at 1, or choose the linear scale")
    values = sorted(set(numbers))
    count = len(values)
    if is_grid:
        first, last, count = (*numbers, DEFAULT_POINTS[1] if points is None else points)[:3]
        if first > last:
            raise RequestError(f"{name}={text} is reversed: write the smaller end first, {name}={last}:{first}")
        spaced = (np.geomspace if scale == "log" else np.linspace)(first, last, max(2, min(count, MOST_POINTS)))
        values = np.unique(np.rint(spaced).astype(int)).tolist()
    if not 2 <= count <= MOST_POINTS or len(values) < 2:
        raise RequestError(f"{name}={text[:60]} is not valid: an axis has from 2 to {MOST_POINTS} points")
    return values


def of_run(run: Run) -> SweepRequest:
    """The request of a stored sweep; RequestError where it can no longer be."""
    if run.kind != "sweep":
        raise RequestError(f"run {run.id} is a comparison: only a sweep can be continued")
    plain = msgspec.structs.asdict(run.request) | {"allocator": run.request.allocator or "default"}
    swept = [axis.name for axis in run.axes if axis.kind == "size"]
    plain["size"] = {name: value for name, value in run.request.size.items() if name not in swept}
    return parse_sweep({**plain, "axes": [msgspec.structs.asdict(axis) for axis in run.axes]})


def _axes_given(value: Any) -> list[_AxisGiven]:
    try:
        given = msgspec.convert(value or [], list[_AxisGiven], strict=False)
    except msgspec.ValidationError as error:
        raise RequestError(f"an axis is not valid: {error}") from None
    if not given:
        raise RequestError("nothing is swept: give a range for a size, as batch=1:1000, or for an option of a strategy")
    names = [axis.name for axis in given]
    most = 1 if any(axis.kind == "option" for axis in given) else 2
    if not len({*names}) == len(given) <= most:
        together = "a sweep has one axis, a size or an option, or two different sizes of the workload"
        raise RequestError(f"{', '.join(names)} cannot be swept together: {together}")
    return given


def _options(line: str) -> dict[str, Option]:
    return {option.name: option for option in strategies.mapper(strategies.parse(line).mapper).options}


def _option(lines: Sequence[str], name: str) -> Option:
    """The swept option, of the strategies that have it; none of them may give it itself."""
    for line in lines:
        if name in strategies.parse(line).options:
            raise RequestError(f"{line} gives {name} itself: leave it out there, or do not sweep it")
    of_numbers = {option.name: option for line in lines for option in _options(line).values() if option.values is None}
    if name not in of_numbers:
        other = f", or sweep {' or '.join(of_numbers)}" if of_numbers else ""
        raise RequestError(f"no chosen strategy has an option {name!r} of numbers: choose one that has it{other}")
    return of_numbers[name]
