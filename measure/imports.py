"""Run files from elsewhere. Nothing in them is trusted: what is not valid is refused, with the path of the fault.

A file that passes can be shown, exported and analysed without surprises: its numbers are finite and in range, what
belongs together has the same length, and every name refers to something. Its texts may still hold anything that can be
printed: whoever shows one escapes it. Its code is text, and is never executed.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NoReturn

import msgspec

from measure.place import is_id
from measure.run import Measurement, Replica, Run, decode

# A comparison takes some 100 kB. The others keep what is read from taking much more room than its file does.
MOST_BYTES = 16 * 2**20
_MOST_VALUES = 2_000_000
_MOST_CONTAINERS = 200_000
_MOST_STRATEGIES = 1_000
# The analysis makes a table of these: processes × rounds.
_MOST_CELLS = 5_000_000
_MOST_DEPTH = 12

_LONGEST = 20_000
_LONGEST_NAME = 200
_NAMES = (
    *("id", "parent", "created", "started", "finished", "workload", "dtype", "device", "strategies", "strategy"),
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
    **dict.fromkeys(("first_call_s", "at_s", "t_s", "budget_s", "dispatch_s"), (0.0, 1e9)),
    **dict.fromkeys(("bandwidth_bytes_per_s", "flops_per_s"), (1e-3, 1e24)),
    **dict.fromkeys(("ratio", "low", "high", "calls"), (1e-24, 1e24)),
    **dict.fromkeys(("max_abs", "max_rel", "max_ulp"), _SIZE),
    **dict.fromkeys(("mismatch_share", "margin"), _SHARE),
    "resolution": (0.0, 1e24),
    "confidence": (0.5, 0.9999),
    "calls_per_sample": (1, 1e12),
}
# What these hold is not fixed by the schema.
_FREE = ("environment", "workload_options", "options", "why", "values", "tolerance")

Path = tuple[str | int, ...]


def read(data: bytes) -> Run:
    """The run in a file from elsewhere. Raises ValueError with one sentence that says what is wrong, and where."""
    if len(data) > MOST_BYTES:
        raise ValueError(
            f"this file is too large: it has {len(data) / 2**20:.1f} MiB, and {MOST_BYTES // 2**20} MiB are allowed"
        )
    if data.count(b",") > _MOST_VALUES or data.count(b"[") + data.count(b"{") > _MOST_CONTAINERS:
        raise ValueError("this file holds too many values to be a run")
    run = decode(data)
    _look_for_others(msgspec.json.decode(data), run, ())
    _look_at(run, (), "")
    _look_at_whole(run)
    return run


def _refuse(path: Path, reason: str) -> NoReturn:
    parts = (f"[{part}]" if isinstance(part, int) else f".{_shown(part)}" for part in path)
    raise ValueError(f"this is not a valid run file: {reason} - at `${''.join(parts)}`")


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
    if "\0" in text:
        _refuse(path, "a text holds a sign that cannot be shown")
    if longest == _LONGEST_NAME and not text.isprintable():
        _refuse(path, "a name holds a sign that cannot be printed")


# --- what belongs together -------------------------------------------------------------------------------------------


def _look_at_whole(run: Run) -> None:
    if not is_id(run.id):
        _refuse(("id",), f"{_shown(run.id)!r} is not an id: 24 digits and letters from a to f are needed")
    if run.parent is not None and not is_id(run.parent):
        _refuse(("parent",), f"{_shown(run.parent)!r} is not an id: 24 digits and letters from a to f are needed")
    for name in ("created", "started", "finished"):
        _look_at_time(getattr(run, name), (name,), needed=name == "created")
    if len(run.measurements) > _MOST_STRATEGIES:
        _refuse(("measurements",), f"there are more than {_MOST_STRATEGIES:,}")
    by_slug: dict[str, Measurement] = {}
    for index, item in enumerate(run.measurements):
        path: Path = ("measurements", index)
        if item.strategy in by_slug:
            _refuse((*path, "strategy"), f"{_shown(item.strategy)!r} occurs a second time")
        by_slug[item.strategy] = item
        _look_at_measurement(item, path)
    for index, item in enumerate(run.measurements):
        if item.twin_of is not None and item.twin_of not in by_slug:
            _refuse(("measurements", index, "twin_of"), f"there is no strategy {_shown(item.twin_of)!r}")
    _look_at_ranking(run, by_slug)
    rounds = {number for replica in _replicas(run) for number in replica.rounds}
    if sum(1 for _ in _replicas(run)) * len(rounds) > _MOST_CELLS:
        _refuse(("measurements",), "there are too many samples")
    if run.control is not None:
        _look_at_order((run.control.low, run.control.high), ("control",))


def _replicas(run: Run) -> Iterator[Replica]:
    return (replica for item in run.measurements for replica in item.replicas)


def _look_at_time(text: str | None, path: Path, *, needed: bool) -> None:
    if text is None and not needed:
        return
    try:
        if datetime.fromisoformat(str(text)).utcoffset() is not None:
            return
    except ValueError:
        pass
    _refuse(path, f"{_shown(text)!r} is not a time of day with its zone, as 2025-01-31T12:00:00Z")


def _look_at_measurement(item: Measurement, path: Path) -> None:
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


def _look_at_order(values: Sequence[float], path: Path) -> None:
    if list(values) != sorted(values):
        _refuse(path, f"{', '.join(map(str, values))} are not in ascending order")


def _look_at_ranking(run: Run, by_slug: dict[str, Measurement]) -> None:
    ranked: set[str] = set()
    for place, group in enumerate(run.ranking):
        if not group:
            _refuse(("ranking", place), "it is empty")
        for index, slug in enumerate(group):
            path: Path = ("ranking", place, index)
            if slug not in by_slug:
                _refuse(path, f"there is no strategy {_shown(slug)!r}")
            if slug in ranked:
                _refuse(path, f"{_shown(slug)!r} occurs a second time")
            if by_slug[slug].latency is None or by_slug[slug].twin_of is not None:
                _refuse(path, f"{_shown(slug)!r} has no latency that could be ranked")
            ranked.add(slug)
