"""The sizes and options that can be swept, and the ranges and strategies to start from: by forecast all of it can be
measured. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

import strategies
from measure.run.fit import forecast_sweep
from measure.run.request import RequestError
from measure.run.run import Axis
from measure.run.sweep_request import DEFAULT_POINTS, MOST_POINTS, SweepRequest, parse_range, parse_sweep
from views.choices import grid
from views.ui.memo import Memo
from workloads.spec import Workload

_TIMES_DEFAULT = 10  # how far a range reaches beyond a default
# The last value of a range, as a share of that, and the fewest points of an axis, by the number of axes.
_SHARES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
_FEWEST_POINTS = {1: 5, 2: 3}
# A machine with this much memory can measure all of it. The same everywhere: an address does not say what is the
# default, and has to mean the same on another machine.
MODEST_BYTES = 4 * 2**30
_memo = Memo(__name__)


@dataclass(frozen=True)
class Bounds:
    """A size of the workload, or an option of numbers of a mapper: the least and the greatest valid value, and how far
    a range reaches at the most where nobody chooses."""

    kind: str
    least: int
    most: int
    reach: int


@dataclass(frozen=True)
class Range:
    first: int
    last: int
    points: int

    @property
    def fields(self) -> tuple[str, str, int]:
        """The values of its fields on the form."""
        return str(self.first), str(self.last), self.points


def sweepable(workload: Workload) -> dict[str, Bounds]:
    """Return everything that can be swept for a workload, sizes first."""
    by_name = {
        size.name: Bounds("size", size.least, size.most, _TIMES_DEFAULT * max(1, size.default))
        for size in workload.sizes
    }
    batch = workload.default_size()["batch"]
    for mapper in strategies.mappers():
        for option in mapper.options if strategies.offered(mapper, workload) else ():
            if option.values is None and option.name not in by_name:
                least, most = option.least or 0, 2**31 - 1 if option.most is None else option.most
                # One that is left to the mapper may be as large as the batch.
                by_name[option.name] = Bounds("option", least, most, _TIMES_DEFAULT * int(option.default) or batch)
    return by_name


def words(workload: Workload, names: Sequence[str]) -> list[str]:
    """Return the strategies to start from where these are swept: the usual ones, and those that have a swept option."""
    usual = grid.usual(workload)
    for name in names:
        further = having(workload, name)
        if not set(further) & set(usual):
            usual += further
    return usual


def having(workload: Workload, option: str) -> list[str]:
    """Return a strategy of each usual mapper that has an option; none for a size."""
    return [
        f"{mapper.slug}.{'graph' if 'graph' in mapper.modes else mapper.modes[0]}"
        for mapper in strategies.mappers()
        if strategies.offered(mapper, workload)
        and mapper.default_modes
        and option in [offered.name for offered in mapper.options]
    ]


def start(workload: Workload, names: Sequence[str]) -> dict[str, Range]:
    """Return the ranges to start from where these are swept together: the widest of which the default budget, and
    modest memory, leave nothing out."""
    return _memo.get((strategies.version(), workload.slug, *names), lambda: _start(workload, names))


def _start(workload: Workload, names: Sequence[str]) -> dict[str, Range]:
    bounds, ranges = sweepable(workload), dict[str, Range]()
    for shares, points in _narrower(len(names)):
        axes = []
        for name, share in zip(names, shares, strict=True):
            of = bounds[name]
            first = max(1, of.least)
            ranges[name] = Range(first, min(of.most, max(first + 1, round(share * of.reach))), points)
            axes.append({"kind": of.kind, "name": name, "range": f"{first}:{ranges[name].last}", "points": points})
        try:
            asked = {"workload": workload.slug, "strategies": words(workload, names), "axes": axes}
            request = parse_sweep(asked)
        except RequestError:
            continue
        if fits(request):
            return {axis.name: replace(ranges[axis.name], points=points_of(axis) or points) for axis in request.axes}
    return ranges


def _narrower(axes: int) -> Iterator[tuple[list[float], int]]:
    """Yield a share of its reach for each axis, and how many points each has, narrower every time: in turns the last
    axis, the first one, and the points."""
    shares, points = [_SHARES[0]] * axes, DEFAULT_POINTS[axes]
    yield shares, points
    for share in _SHARES[1:]:
        for axis in reversed(range(axes)):
            shares = [*shares[:axis], share, *shares[axis + 1 :]]
            yield shares, points
        if points > _FEWEST_POINTS[axes]:
            points -= 1
            yield shares, points


def fits(request: SweepRequest) -> bool:
    """True if by forecast a sweep leaves nothing out on a machine with modest memory."""
    # Where its largest points alone do not fit, that is known soon.
    largest = tuple(structs.replace(axis, values=axis.values[-2:]) for axis in request.axes)
    for part in (replace(request, axes=largest), request):
        needs = forecast_sweep(part, MODEST_BYTES)
        if needs.skipped or needs.too_long or needs.peak_bytes > MODEST_BYTES:
            return False
    return True


def points_of(axis: Axis) -> int | None:
    """Return the number of points of the grid that has these values, which is more than there are values where some
    coincide as whole numbers; None where the axis is a list."""
    text = f"{axis.values[0]}:{axis.values[-1]}"
    for points in (DEFAULT_POINTS[1], DEFAULT_POINTS[2], *range(len(axis.values), MOST_POINTS + 1)):
        try:
            values = parse_range(text, axis.scale, points, name=axis.name)
        except RequestError:
            return None
        if values == axis.values:
            return points
    return None
