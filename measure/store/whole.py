"""The checks of what belongs together in a run file: equal lengths, names that refer to something, orders that hold."""

import hashlib
import math
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from measure.model.place import is_id
from measure.model.run import TIMELINE_POINTS, Analysis, Measurement, Point, RequestRecord, Run
from measure.store.refusal import Path, quoted, refuse
from measure.sweep.lines import line_of
from measure.sweep.request import MOST_CELLS, MOST_POINTS

_MOST_STRATEGIES = 1_000
# The analysis looks at every pair of processes of one strategy.
_MOST_PAIRS = 5_000_000
# A grid's points, and those between.
_MOST_POINTS = 2 * MOST_CELLS
_MOST_VALUE = 2**31 - 1
# Of what every list of runs and every page shows: far beyond any workload and any machine.
_MOST_ENTRIES = 50
_MOST_FACTS = 5_000
_MOST_OF_FACTS = 100_000  # signs
_MOST_CLAIMS = 300
_MOST_EVIDENCE = 300
# What a file says whose maker did not hash: it vouches for nothing.
_NOT_HASHED = "0" * 64
# Of a calendar, and within a lifetime: `datetime` reads weeks and the year 9999 too.
_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)", re.ASCII)
# A clock may be set while a run is measured.
_CLOCK_SET = timedelta(minutes=5)


def check(run: Run, path: Path = ()) -> None:
    """Refuse a run of which two parts contradict each other, or that is larger than any that is measured. ``path``: to
    a run within one of claims."""
    if not is_id(run.id):
        refuse((*path, "id"), f"{quoted(run.id)!r} is not an id: 24 digits and letters from a to f are needed")
    if run.parent is not None and not is_id(run.parent):
        refuse((*path, "parent"), f"{quoted(run.parent)!r} is not an id: 24 digits and letters from a to f are needed")
    _check_times(run, path)
    if not 1 <= run.analysis.version <= Analysis().version:
        refuse((*path, "analysis", "version"), f"{run.analysis.version} is not known: {Analysis().version} is")
    _check_request(run.request, (*path, "request"))
    check_size(run, path)
    for name in _OTHERS[run.kind]:
        if getattr(run, name):
            refuse((*path, name), f"a run of kind {run.kind} has none")
    if run.kind == "claims":
        _check_claims(run)
    if run.kind == "sweep":
        _check_sweep(run, path)
    _check_body(run, run.request, path)


_OF_COMPARISONS = ("measurements", "ranking", "limit", "control")
_OF_SWEEPS = ("axes", "points", "crossovers", "fits")
_OF_CLAIMS = ("claims", "evidence")
# What a run of a kind does not have.
_OTHERS = {
    "compare": (*_OF_SWEEPS, *_OF_CLAIMS),
    "sweep": (*_OF_COMPARISONS[:2], *_OF_CLAIMS),
    "claims": (*_OF_COMPARISONS, *_OF_SWEEPS),
}


def _check_claims(run: Run) -> None:
    for name, most in (("claims", _MOST_CLAIMS), ("evidence", _MOST_EVIDENCE)):
        items = getattr(run, name)
        if not isinstance(items, list):
            refuse((name,), "a run of kind claims has a list of them")
        if len(items) > most:
            refuse((name,), f"there are more than {most}")
    seen: set[str] = set()
    for index, claim in enumerate(run.claims or ()):
        if claim in seen:
            refuse(("claims", index), f"{quoted(claim)!r} occurs a second time")
        seen.add(claim)
    seen = set()
    for index, item in enumerate(run.evidence or ()):
        path: Path = ("evidence", index)
        if item.need in seen:
            refuse((*path, "need"), f"{quoted(item.need)!r} occurs a second time")
        seen.add(item.need)
        if item.run is not None and item.script is not None:
            refuse(path, "either a run or a script is needed, not both")
        if item.run is not None and item.run.kind == "claims":
            refuse((*path, "run", "kind"), "within a run of claims there are comparisons and sweeps")
        if item.run is not None:
            check(item.run, (*path, "run"))


def _check_request(request: RequestRecord, path: Path) -> None:
    for name in ("size", "workload_options"):
        if len(getattr(request, name)) > _MOST_ENTRIES:
            refuse((*path, name), f"there are more than {_MOST_ENTRIES}")
    if len(request.strategies) > _MOST_STRATEGIES:
        refuse((*path, "strategies"), f"there are more than {_MOST_STRATEGIES:,}")


def _weight(value: Any) -> tuple[int, int]:
    """The number of values in a value, and that of the signs in all of them."""
    if isinstance(value, dict | list):
        keys = list(value) if isinstance(value, dict) else []
        inside = [_weight(item) for item in (value.values() if isinstance(value, dict) else value)]
        return 1 + sum(count for count, _ in inside), sum(map(len, keys)) + sum(signs for _, signs in inside)
    return 1, len(str(value))


def _check_body(body: Run | Point, request: RequestRecord, path: Path) -> None:
    """Check what a comparison and a point of a sweep have in common."""
    if len(body.measurements) > _MOST_STRATEGIES:
        refuse((*path, "measurements"), f"there are more than {_MOST_STRATEGIES:,}")
    by_slug: dict[str, Measurement] = {}
    for index, item in enumerate(body.measurements):
        its_path: Path = (*path, "measurements", index)
        if item.strategy in by_slug:
            refuse((*its_path, "strategy"), f"{quoted(item.strategy)!r} occurs a second time")
        by_slug[item.strategy] = item
        _check_measurement(item, its_path)
    for index, item in enumerate(body.measurements):
        if item.twin_of is not None and item.twin_of not in by_slug:
            refuse((*path, "measurements", index, "twin_of"), f"there is no strategy {quoted(item.twin_of)!r}")
    if body.measurements or isinstance(body, Run):
        _check_ranking(body.ranking, by_slug, path)
    if sum(math.comb(len(item.replicas), 2) for item in body.measurements) > _MOST_PAIRS:
        refuse((*path, "measurements"), "there are too many processes")
    named = {*by_slug, *request.strategies}
    for index, item in enumerate(body.measurements):
        for place, pair in enumerate(item.break_even):
            if pair.against not in named:
                its_path = (*path, "measurements", index, "break_even", place, "against")
                refuse(its_path, f"there is no strategy {quoted(pair.against)!r}")
    if body.control is not None:
        if body.control.strategy not in named:
            refuse((*path, "control", "strategy"), f"there is no strategy {quoted(body.control.strategy)!r}")
        _check_order((body.control.low, body.control.high), (*path, "control"))


def _check_sweep(run: Run, path: Path) -> None:
    if not 1 <= len(run.axes) <= 2:
        refuse((*path, "axes"), f"there are {len(run.axes)}, and a sweep has one or two")
    for index, axis in enumerate(run.axes):
        values: Path = (*path, "axes", index, "values")
        if any(axis.name == other.name for other in run.axes[:index]):
            refuse((*path, "axes", index, "name"), f"{quoted(axis.name)!r} occurs a second time")
        if not 2 <= len(axis.values) <= MOST_POINTS:
            refuse(values, f"there are {len(axis.values):,}, and an axis has from 2 to {MOST_POINTS}")
        least = 1 if axis.scale == "log" else 0
        if not all(least <= value <= _MOST_VALUE for value in axis.values):
            refuse(values, f"whole numbers from {least} to {_MOST_VALUE} are needed")
        if any(low >= high for low, high in pairwise(axis.values)):
            refuse(values, "they do not ascend")
    if len(run.points) > _MOST_POINTS:
        refuse((*path, "points"), f"there are more than {_MOST_POINTS:,}")
    _check_points(run, path)
    known = {line_of(item.strategy, run.axes) for point in run.points for item in point.measurements}
    names = {axis.name for axis in run.axes}
    for index, crossover in enumerate(run.crossovers):
        its_path: Path = (*path, "crossovers", index)
        _check_names((crossover.a, crossover.b), known, crossover.axis, names, its_path)
        ends = [value for value in (crossover.low, crossover.value, crossover.high) if value is not None]
        if len(ends) not in (0, 3) or (not ends) is not (crossover.none is not None):
            refuse(its_path, "either value, low and high are needed, or none, the reason why there are none")
        _check_order(ends, its_path)
    for index, fit in enumerate(run.fits):
        its_path = (*path, "fits", index)
        _check_names((fit.strategy,), known, fit.axis, names, its_path)
        _check_order((fit.fixed_low_s, fit.fixed_s, fit.fixed_high_s), its_path)
        _check_order((fit.per_element_low_s, fit.per_element_s, fit.per_element_high_s), its_path)


def _check_points(run: Run, within: Path) -> None:
    names = [axis.name for axis in run.axes]
    places: set[tuple[int, ...]] = set()
    asked = {*run.request.strategies}
    for index, point in enumerate(run.points):
        path: Path = (*within, "points", index)
        if sorted(point.at) != sorted(names):
            refuse((*path, "at"), f"a value of {' and of '.join(map(quoted, names))} is needed, and of nothing else")
        for axis in run.axes:
            if not axis.values[0] <= point.at[axis.name] <= axis.values[-1]:
                refuse((*path, "at", axis.name), f"{point.at[axis.name]} is not on the axis")
        place = tuple(point.at[name] for name in names)
        if place in places:
            refuse((*path, "at"), "this point occurs a second time")
        places.add(place)
        if not point.measurements:
            # Who wins there may be inferred from the points around it.
            for slug in (slug for group in point.ranking for slug in group):
                if slug not in asked:
                    refuse((*path, "ranking"), f"there is no strategy {quoted(slug)!r}")
        _check_body(point, run.request, path)


def _check_names(slugs: Sequence[str], known: set[str], axis: str, axes: set[str], path: Path) -> None:
    for slug in slugs:
        if slug not in known:
            refuse(path, f"there is no strategy {quoted(slug)!r} at any point")
    if axis not in axes:
        refuse((*path, "axis"), f"there is no axis {quoted(axis)!r}")


def check_size(run: Run, path: Path = ()) -> None:
    """Refuse a run that is larger than any that is measured: looking at each of its values would take long."""
    facts, signs = _weight(run.environment)
    if facts > _MOST_FACTS or signs > _MOST_OF_FACTS:
        reason = f"it holds {facts:,} facts of {signs:,} signs: that is more than any machine has"
        refuse((*path, "environment"), reason)
    if len(run.measurements) > _MOST_STRATEGIES:
        refuse((*path, "measurements"), f"there are more than {_MOST_STRATEGIES:,}")


def _check_times(run: Run, path: Path) -> None:
    moments = {}
    for name in ("created", "started", "finished"):
        text = getattr(run, name)
        if text is None and name != "created":
            continue
        try:
            if not _TIME.fullmatch(str(text)):
                raise ValueError
            moments[name] = datetime.fromisoformat(str(text))
        except ValueError:
            refuse((*path, name), f"{quoted(text)!r} is not a time of day with its zone, as 2025-01-31T12:00:00Z")
    for (before, first), (after, then) in pairwise(moments.items()):
        if then < first - _CLOCK_SET:
            refuse((*path, after), f"it is before `{before}`")


def _check_measurement(item: Measurement, path: Path) -> None:
    if item.code is not None and item.code.sha256 not in (_hash(item.code.source), _NOT_HASHED):
        refuse((*path, "code", "sha256"), "it is not the hash of the source")
    seen = set()
    for index, replica in enumerate(item.replicas):
        its_path = (*path, "replicas", index)
        if replica.id in seen:
            refuse((*its_path, "id"), f"{replica.id} occurs a second time")
        seen.add(replica.id)
        lengths = [len(replica.rounds), len(replica.at_s), len(replica.samples_s)]
        if len(set(lengths)) > 1:
            refuse(its_path, f"rounds, at_s and samples_s have {lengths[0]}, {lengths[1]} and {lengths[2]} values")
        for name, counted in (("faults", replica.faults), ("kernel_s", replica.kernel_s), ("cpu_s", replica.cpu_s)):
            if counted and len(counted) != len(replica.samples_s):
                refuse((*its_path, name), f"there are {len(counted)} for {len(replica.samples_s)} samples")
        if any(before > after for before, after in pairwise(replica.rounds)):
            refuse((*its_path, "rounds"), "they do not ascend")
    if item.latency is not None:
        _check_order((item.latency.low_s, item.latency.median_s, item.latency.high_s), (*path, "latency"))
    timeline = item.memory.timeline if item.memory is not None else None
    if timeline is not None and len(timeline.t_s) != len(timeline.live_bytes):
        refuse(
            (*path, "memory", "timeline"),
            f"t_s and live_bytes have {len(timeline.t_s)} and {len(timeline.live_bytes)} values",
        )
    if timeline is not None and len(timeline.t_s) > TIMELINE_POINTS:
        refuse((*path, "memory", "timeline"), f"there are more than {TIMELINE_POINTS} points")


def _hash(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


def _check_order(values: Sequence[float], path: Path) -> None:
    if list(values) != sorted(values):
        refuse(path, f"{', '.join(map(str, values))} are not in ascending order")


def _check_ranking(ranking: Sequence[Sequence[str]], by_slug: dict[str, Measurement], path: Path) -> None:
    ranked: set[str] = set()
    for place, group in enumerate(ranking):
        if not group:
            refuse((*path, "ranking", place), "it is empty")
        for index, slug in enumerate(group):
            its_path: Path = (*path, "ranking", place, index)
            if slug not in by_slug:
                refuse(its_path, f"there is no strategy {quoted(slug)!r}")
            if slug in ranked:
                refuse(its_path, f"{quoted(slug)!r} occurs a second time")
            if by_slug[slug].latency is None or by_slug[slug].twin_of is not None:
                refuse(its_path, f"{quoted(slug)!r} has no latency that could be ranked")
            ranked.add(slug)
