"""Run files from elsewhere. Nothing in them is trusted: what is not valid is refused, with the path of the fault.

A file that passes can be shown, exported and analysed without surprises: its numbers are finite and in range, what
belongs together has the same length, and every name refers to something. Its texts may still hold anything that can be
printed: whoever shows one escapes it. Its code is text, and is never executed.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, NoReturn

import msgspec

from measure.model import why
from measure.model.place import is_id
from measure.model.run import (
    TIMELINE_POINTS,
    Analysis,
    Measurement,
    Point,
    Replica,
    RequestRecord,
    Run,
    decode,
    encode,
)
from measure.sweep.request import MOST_CELLS, MOST_POINTS
from workloads import places

# A comparison takes some 100 kB, a sweep of many points a few MB, and one of 400 points and all strategies, each with a
# dozen rounds in five processes, 63 MiB. The others keep what is read from taking much more room than its file does.
MOST_BYTES = 80 * 2**20
# Checking one of those takes seconds and some 300 MiB: more than a stranger may have of a server that serves others.
MOST_BYTES_HOSTED = 16 * 2**20
_MOST_VALUES = 5_000_000
_MOST_CONTAINERS = 800_000
_MOST_STRATEGIES = 1_000
# The analysis makes a table of these: processes × rounds.
_MOST_CELLS = 5_000_000
_MOST_DEPTH = 14
# A grid's points, and those between.
_MOST_POINTS = 2 * MOST_CELLS
_MOST_VALUE = 2**31 - 1
# Of what every list of runs and every page shows: far beyond any workload and any machine.
_MOST_ENTRIES = 50
_MOST_FACTS = 5_000
_MOST_OF_FACTS = 100_000  # signs

_LONGEST = 20_000
_LONGEST_NAME = 200
_NAMES = (
    *("id", "parent", "created", "started", "finished", "workload", "dtype", "device", "strategies", "strategy"),
    *("name", "axis", "a", "b", "scale"),
    *("mapper", "mode", "twin_of", "stage", "code", "type", "ended", "against", "ranking", "path", "sha256"),
)
_LONGEST_OF = {"source": 1_000_000, "detail": 1_000_000, **dict.fromkeys(_NAMES, _LONGEST_NAME)}

# Bounds by the name of a field, which means the same wherever it occurs; both ends are allowed.
_DURATION = (1e-12, 1e9)
_COUNT = (0, 2**63 - 1)
_SHARE = (0.0, 1.0)
_SIZE = (0.0, 1.7e308)
_BOUNDS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("median_s", "low_s", "high_s", "samples_s", "seconds"), _DURATION),
    **dict.fromkeys(("fixed_s", "fixed_low_s", "fixed_high_s"), (0.0, 1e9)),
    **dict.fromkeys(("per_element_s", "per_element_low_s", "per_element_high_s"), (0.0, 1e9)),
    "value": (0.0, 1e24),
    **dict.fromkeys(("first_call_s", "at_s", "t_s", "budget_s", "dispatch_s", "op_s", "call_s"), (0.0, 1e9)),
    **dict.fromkeys(("bandwidth_bytes_per_s", "flops_per_s", "functions_per_s"), (1e-3, 1e24)),
    **dict.fromkeys(("ratio", "low", "high", "calls"), (1e-24, 1e24)),
    **dict.fromkeys(("max_abs", "max_rel", "max_ulp"), _SIZE),
    **dict.fromkeys(("mismatch_share", "margin"), _SHARE),
    "resolution": (0.0, 1e24),
    "confidence": (0.5, 0.9999),
    "calls_per_sample": (1, 1e12),
}
# Mapbench's own words, which quote nobody. An error's may come from anywhere, terminal colours included.
_OWN_WORDS = ("verdict", "method", "ended", "none")
# What a terminal takes for a command, and what turns the direction of the text around it.
_COMMANDS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# What these hold is not fixed by the schema.
_FREE = ("environment", "workload_options", "options", "why", "values", "tolerance")

# What a file says whose maker did not hash: it vouches for nothing.
_NOT_HASHED = "0" * 64

Path = tuple[str | int, ...]


def read(data: bytes) -> Run:
    """The run in a file from elsewhere. Raises ValueError with one sentence that says what is wrong, and where."""
    try:
        _look_at_weight(data, "this file")
        run = decode(data)
        raw = _parsed(data)
        _look_for_others(raw, run, ())
        _look_at(run, (), "")
        _look_at_whole(run)
        # What a file leaves out has a default, which an export writes.
        _look_at_weight(encode(run), "this file, written in full,")
    except ValueError as error:
        raise ValueError(_printable(str(error))) from None
    return run


def most_bytes() -> int:
    """How large a file may be here."""
    return MOST_BYTES_HOSTED if places.hosted() else MOST_BYTES


def _look_at_weight(data: bytes, what: str) -> None:
    if len(data) > most_bytes():
        allowed = f"{most_bytes() // 2**20} MiB are allowed{' on this server' if places.hosted() else ''}"
        raise ValueError(f"{what} is too large: it has {len(data) / 2**20:.1f} MiB, and {allowed}")
    if data.count(b",") > _MOST_VALUES or data.count(b"[") + data.count(b"{") > _MOST_CONTAINERS:
        raise ValueError(f"{what} holds too many values to be a run")


class _Twice(dict[str, Any]):
    """An object in which ``name`` occurs more than once."""

    name: str


def _parsed(data: bytes) -> Any:
    """The document as it is written. Refuses what says one thing twice: the one that comes first would be lost."""
    found = False

    def take(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        value = dict(pairs)
        if len(value) == len(pairs):
            return value
        found = True
        names = [name for name, _ in pairs]
        twice = _Twice(value)
        twice.name = next(name for index, name in enumerate(names) if name in names[:index])
        return twice

    try:
        raw = json.loads(data, object_pairs_hook=take)
        if found:
            _look_for_twice(raw, ())
    except RecursionError:
        raise ValueError("this is not a valid run file: it is nested too deeply") from None
    return raw


def _look_for_twice(raw: Any, path: Path) -> None:
    if isinstance(raw, _Twice):
        _refuse((*path, raw.name), "it occurs a second time")
    items = raw.items() if isinstance(raw, dict) else enumerate(raw) if isinstance(raw, list) else ()
    for key, item in items:
        _look_for_twice(item, (*path, key))


def _refuse(path: Path, reason: str) -> NoReturn:
    parts = (f"[{part}]" if isinstance(part, int) else f".{_shown(part)}" for part in path)
    raise ValueError(f"this is not a valid run file: {reason} - at `${''.join(parts)}`")


def _printable(text: str) -> str:
    """A sentence that quotes a file, for a terminal: what is no sign of a text is written as its code."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _look_for_others(raw: Any, value: Any, path: Path) -> None:
    """Refuse fields that the schema does not have: they would be lost."""
    if isinstance(value, msgspec.Struct):
        names = value.__struct_fields__
        for name in raw:
            if name not in names:
                _refuse((*path, name), "there is no such field")
        for name in names:
            if name in raw and name not in _FREE:
                _look_for_others(raw[name], getattr(value, name), (*path, name))
    elif isinstance(value, list) and value and isinstance(value[0], msgspec.Struct):
        for index, item in enumerate(value):
            _look_for_others(raw[index], item, (*path, index))


def _look_at(value: Any, path: Path, name: str, *, free: bool = False) -> None:
    """Check every number and every text; ``name``: of the field that they are in."""
    if len(path) > _MOST_DEPTH:
        _refuse(path, "it is nested too deeply")
    if isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            _look_at(getattr(value, field), (*path, field), field, free=field in _FREE)
    elif isinstance(value, dict):
        for key, item in value.items():
            _look_at_text(key, (*path, key), _LONGEST_NAME)
            _look_at(item, (*path, key), name, free=free)
    elif isinstance(value, list):
        if not free and value and type(value[0]) in (int, float):  # then all are: samples are most of a file
            low, high = _BOUNDS.get(name, _COUNT)
            if low <= min(value) and max(value) <= high:
                return
        for index, item in enumerate(value):
            _look_at(item, (*path, index), name, free=free)
    elif isinstance(value, str):
        _look_at_text(value, path, _LONGEST if free else _LONGEST_OF.get(name, _LONGEST))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        low, high = (-_SIZE[1], _SIZE[1]) if free else _BOUNDS.get(name, _COUNT)
        if not low <= value <= high:  # NaN fails this too
            _refuse(path, f"{_shown(value)} is not valid: a number from {low:g} to {high:g} is needed")


def _look_at_text(text: str, path: Path, longest: int) -> None:
    if len(text) > longest:
        _refuse(path, f"a text of {len(text):,} signs is too long: {longest:,} are allowed")
    if "\0" in text or (path and path[-1] in _OWN_WORDS and _COMMANDS.search(text)):
        _refuse(path, "a text holds a sign that cannot be shown")
    if longest == _LONGEST_NAME and not text.isprintable():
        _refuse(path, "a name holds a sign that cannot be printed")


# --- what belongs together -------------------------------------------------------------------------------------------


def _look_at_whole(run: Run) -> None:
    if not is_id(run.id):
        _refuse(("id",), f"{_shown(run.id)!r} is not an id: 24 digits and letters from a to f are needed")
    if run.parent is not None and not is_id(run.parent):
        _refuse(("parent",), f"{_shown(run.parent)!r} is not an id: 24 digits and letters from a to f are needed")
    _look_at_times(run)
    if not 1 <= run.analysis.version <= Analysis().version:
        _refuse(("analysis", "version"), f"{run.analysis.version} is not known: {Analysis().version} is")
    _look_at_request(run.request)
    facts, signs = _weight(run.environment)
    if facts > _MOST_FACTS or signs > _MOST_OF_FACTS:
        _refuse(("environment",), f"it holds {facts:,} facts of {signs:,} signs: that is more than any machine has")
    others = ("axes", "points", "crossovers", "fits") if run.kind == "compare" else ("measurements", "ranking")
    for name in others:
        if getattr(run, name):
            _refuse((name,), f"a run of kind {run.kind} has none")
    if run.kind == "sweep":
        _look_at_sweep(run)
    _look_at_body(run, run.request, ())


def _look_at_request(request: RequestRecord) -> None:
    for name in ("size", "workload_options"):
        if len(getattr(request, name)) > _MOST_ENTRIES:
            _refuse(("request", name), f"there are more than {_MOST_ENTRIES}")
    if len(request.strategies) > _MOST_STRATEGIES:
        _refuse(("request", "strategies"), f"there are more than {_MOST_STRATEGIES:,}")


def _weight(value: Any) -> tuple[int, int]:
    """How many values there are, and of how many signs."""
    if isinstance(value, dict | list):
        keys = list(value) if isinstance(value, dict) else []
        each = [_weight(item) for item in (value.values() if isinstance(value, dict) else value)]
        return 1 + sum(n for n, _ in each), sum(map(len, keys)) + sum(n for _, n in each)
    return 1, len(str(value))


def _look_at_body(body: Run | Point, request: RequestRecord, path: Path) -> None:
    """What a comparison and a point of a sweep have in common."""
    if len(body.measurements) > _MOST_STRATEGIES:
        _refuse((*path, "measurements"), f"there are more than {_MOST_STRATEGIES:,}")
    by_slug: dict[str, Measurement] = {}
    for index, item in enumerate(body.measurements):
        its_path: Path = (*path, "measurements", index)
        if item.strategy in by_slug:
            _refuse((*its_path, "strategy"), f"{_shown(item.strategy)!r} occurs a second time")
        by_slug[item.strategy] = item
        _look_at_measurement(item, its_path)
    for index, item in enumerate(body.measurements):
        if item.twin_of is not None and item.twin_of not in by_slug:
            _refuse((*path, "measurements", index, "twin_of"), f"there is no strategy {_shown(item.twin_of)!r}")
    if body.measurements or isinstance(body, Run):
        _look_at_ranking(body.ranking, by_slug, path)
    rounds = {number for replica in _replicas(body) for number in replica.rounds}
    if sum(1 for _ in _replicas(body)) * len(rounds) > _MOST_CELLS:
        _refuse((*path, "measurements"), "there are too many samples")
    named = {*by_slug, *request.strategies}
    for index, item in enumerate(body.measurements):
        for place, each in enumerate(item.break_even):
            if each.against not in named:
                its_path = (*path, "measurements", index, "break_even", place, "against")
                _refuse(its_path, f"there is no strategy {_shown(each.against)!r}")
    if body.control is not None:
        if body.control.strategy not in named:
            _refuse((*path, "control", "strategy"), f"there is no strategy {_shown(body.control.strategy)!r}")
        _look_at_order((body.control.low, body.control.high), (*path, "control"))


def _replicas(body: Run | Point) -> Iterator[Replica]:
    return (replica for item in body.measurements for replica in item.replicas)


def _look_at_sweep(run: Run) -> None:
    if not 1 <= len(run.axes) <= 2:
        _refuse(("axes",), f"there are {len(run.axes)}, and a sweep has one or two")
    for index, axis in enumerate(run.axes):
        values: Path = ("axes", index, "values")
        if any(axis.name == other.name for other in run.axes[:index]):
            _refuse(("axes", index, "name"), f"{_shown(axis.name)!r} occurs a second time")
        if not 2 <= len(axis.values) <= MOST_POINTS:
            _refuse(values, f"there are {len(axis.values):,}, and an axis has from 2 to {MOST_POINTS}")
        least = 1 if axis.scale == "log" else 0
        if not all(least <= value <= _MOST_VALUE for value in axis.values):
            _refuse(values, f"whole numbers from {least} to {_MOST_VALUE} are needed")
        if any(low >= high for low, high in pairwise(axis.values)):
            _refuse(values, "they do not ascend")
    if len(run.points) > _MOST_POINTS:
        _refuse(("points",), f"there are more than {_MOST_POINTS:,}")
    _look_at_points(run)
    known = {item.strategy for point in run.points for item in point.measurements}
    names = {axis.name for axis in run.axes}
    for index, crossover in enumerate(run.crossovers):
        path: Path = ("crossovers", index)
        _look_at_names((crossover.a, crossover.b), known, crossover.axis, names, path)
        found = [each for each in (crossover.low, crossover.value, crossover.high) if each is not None]
        if len(found) not in (0, 3) or (not found) is not (crossover.none is not None):
            _refuse(path, "either value, low and high are needed, or none, the reason why there are none")
        _look_at_order(found, path)
    for index, fit in enumerate(run.fits):
        path = ("fits", index)
        _look_at_names((fit.strategy,), known, fit.axis, names, path)
        _look_at_order((fit.fixed_low_s, fit.fixed_s, fit.fixed_high_s), path)
        _look_at_order((fit.per_element_low_s, fit.per_element_s, fit.per_element_high_s), path)


def _look_at_points(run: Run) -> None:
    names = [axis.name for axis in run.axes]
    places: set[tuple[int, ...]] = set()
    for index, point in enumerate(run.points):
        path: Path = ("points", index)
        if sorted(point.at) != sorted(names):
            _refuse((*path, "at"), f"a value of {' and of '.join(map(_shown, names))} is needed, and of nothing else")
        for axis in run.axes:
            if not axis.values[0] <= point.at[axis.name] <= axis.values[-1]:
                _refuse((*path, "at", axis.name), f"{point.at[axis.name]} is not on the axis")
        place = tuple(point.at[name] for name in names)
        if place in places:
            _refuse((*path, "at"), "this point occurs a second time")
        places.add(place)
        if not point.measurements:
            # Who wins there may be inferred from the points around it.
            for slug in (slug for group in point.ranking for slug in group):
                if slug not in run.request.strategies:
                    _refuse((*path, "ranking"), f"there is no strategy {_shown(slug)!r}")
        _look_at_body(point, run.request, path)


def _look_at_names(slugs: Sequence[str], known: set[str], axis: str, axes: set[str], path: Path) -> None:
    for slug in slugs:
        if slug not in known:
            _refuse(path, f"there is no strategy {_shown(slug)!r} at any point")
    if axis not in axes:
        _refuse((*path, "axis"), f"there is no axis {_shown(axis)!r}")


# Of a calendar, and within a lifetime: `datetime` reads weeks and the year 9999 too.
_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)", re.ASCII)


# A clock may be set while a run is measured.
_CLOCK_SET = timedelta(minutes=5)


def _look_at_times(run: Run) -> None:
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
            _refuse((name,), f"{_shown(text)!r} is not a time of day with its zone, as 2025-01-31T12:00:00Z")
    for (before, first), (after, then) in pairwise(moments.items()):
        if then < first - _CLOCK_SET:
            _refuse((after,), f"it is before `{before}`")


def _look_at_measurement(item: Measurement, path: Path) -> None:
    if item.code is not None and item.code.sha256 not in (_hash(item.code.source), _NOT_HASHED):
        _refuse((*path, "code", "sha256"), "it is not the hash of the source")
    try:
        why.read(item.why)
    except ValueError as error:
        reason, _, inside = str(error).partition(" - at `$.")
        _refuse((*path, "why", *filter(None, (inside.rstrip("`"),))), reason)
    seen = set()
    for index, replica in enumerate(item.replicas):
        its_path = (*path, "replicas", index)
        if replica.id in seen:
            _refuse((*its_path, "id"), f"{replica.id} occurs a second time")
        seen.add(replica.id)
        lengths = [len(replica.rounds), len(replica.at_s), len(replica.samples_s)]
        if len(set(lengths)) > 1:
            _refuse(its_path, f"rounds, at_s and samples_s have {lengths[0]}, {lengths[1]} and {lengths[2]} values")
        if len(set(replica.rounds)) < len(replica.rounds):
            _refuse((*its_path, "rounds"), "a round occurs twice")
    if item.latency is not None:
        _look_at_order((item.latency.low_s, item.latency.median_s, item.latency.high_s), (*path, "latency"))
    timeline = item.memory.timeline if item.memory is not None else None
    if timeline is not None and len(timeline.t_s) != len(timeline.live_bytes):
        _refuse(
            (*path, "memory", "timeline"),
            f"t_s and live_bytes have {len(timeline.t_s)} and {len(timeline.live_bytes)} values",
        )
    if timeline is not None and len(timeline.t_s) > TIMELINE_POINTS:
        _refuse((*path, "memory", "timeline"), f"there are more than {TIMELINE_POINTS} points")


def _hash(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


def _look_at_order(values: Sequence[float], path: Path) -> None:
    if list(values) != sorted(values):
        _refuse(path, f"{', '.join(map(str, values))} are not in ascending order")


def _look_at_ranking(ranking: Sequence[Sequence[str]], by_slug: dict[str, Measurement], path: Path) -> None:
    ranked: set[str] = set()
    for place, group in enumerate(ranking):
        if not group:
            _refuse((*path, "ranking", place), "it is empty")
        for index, slug in enumerate(group):
            its_path: Path = (*path, "ranking", place, index)
            if slug not in by_slug:
                _refuse(its_path, f"there is no strategy {_shown(slug)!r}")
            if slug in ranked:
                _refuse(its_path, f"{_shown(slug)!r} occurs a second time")
            if by_slug[slug].latency is None or by_slug[slug].twin_of is not None:
                _refuse(its_path, f"{_shown(slug)!r} has no latency that could be ranked")
            ranked.add(slug)
