"""Run files from elsewhere. Nothing in them is trusted: what is not valid is refused, with the path of the fault.

The types of a run (`measure.run.run`) hold the bounds of single values. What is checked here is that parts belong
together: lists of equal lengths, names that refer to something, orders that hold. A file that passes can be shown,
exported and analysed without surprises. Its texts may still hold anything that can be printed: whoever shows one
escapes it. Its code is text, and is never executed.
"""

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from measure.judge.lines import line_of
from measure.run.run import Measurement, Point, Replica, Run, Timeline
from measure.run.run_file import decode

# A comparison takes some 100 kB, a sweep of many points a few MB, and one of 400 points and all strategies, each with a
# dozen rounds in five processes, 63 MiB. Reading one of those takes seconds and some 300 MiB: a server that serves
# strangers allows less.
MOST_BYTES = 80 * 2**20
# The fewest bytes of a large file for a value, and for an object or a list: so what is read takes no more than some
# five times its file.
_BYTES_OF_VALUE, _BYTES_OF_CONTAINER = 10, 100
# What a file says whose maker did not hash: it vouches for nothing.
_NOT_HASHED = "0" * 64
# Of a calendar, and within a lifetime: `datetime` reads weeks and the year 9999 too.
_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_LONGEST, _END = 900, 200  # signs of a refusal, and those of its end, which has the path
_OF_COMPARISONS, _OF_SWEEPS = ("measurements", "ranking"), ("axes", "points", "crossovers", "fits")
_OF_CLAIMS = ("claims", "evidence")
# What a run of a kind does not have.
_OTHERS = {
    "compare": (*_OF_SWEEPS, *_OF_CLAIMS),
    "sweep": (*_OF_COMPARISONS, *_OF_CLAIMS),
    "claims": (*_OF_COMPARISONS, "limit", "control", *_OF_SWEEPS),
}

# Where a fault is, as msgspec writes it behind ``$``, and what it is.
Fault = tuple[str, str]


def read(data: bytes, most_bytes: int = MOST_BYTES) -> Run:
    """The run in a file from elsewhere, of so many bytes at most. Raises ValueError with one sentence that says what is
    wrong, and where."""
    try:
        _check_weight(data, most_bytes)
        run = decode(data)
        for path, reason in _faults(run):
            raise ValueError(f"this is not a valid run file: {reason} - at `${path}`")
    except ValueError as error:
        raise ValueError(_printable(str(error))) from None
    return run


def _check_weight(data: bytes, most_bytes: int) -> None:
    """Refuse what is larger than a run can be, before it is parsed."""
    if len(data) > most_bytes:
        allowed = f"{most_bytes // 2**20} MiB are allowed{' on this server' if most_bytes < MOST_BYTES else ''}"
        raise ValueError(f"this file is too large: it has {len(data) / 2**20:.1f} MiB, and {allowed}")
    values, containers = data.count(b","), data.count(b"[") + data.count(b"{")
    if values > most_bytes // _BYTES_OF_VALUE or containers > most_bytes // _BYTES_OF_CONTAINER:
        raise ValueError("this file holds too many values to be a run")
    if _NUL.search(data):
        raise ValueError("this file holds the sign NUL, which cannot be shown")


def _printable(sentence: str) -> str:
    """A refusal for a terminal, in which no regular expression stands for what it says: what is no sign of a text is
    written as its code, and of a very long one the middle is left out."""
    words = re.sub(r"matching regex '.*?' - at", "of signs that are allowed there - at", sentence, flags=re.DOTALL)
    text = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in words)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - _END]}…{text[-_END:]}"


def _faults(run: Run, path: str = "") -> Iterator[Fault]:
    """The contradictions between parts of a run. ``path``: to a run within one of claims."""
    for name in ("created", "started", "finished"):
        if (text := getattr(run, name)) is not None and not _is_time(text):
            yield f"{path}.{name}", f"{text[:60]!r} is not a time of day with its zone, as 2025-01-31T12:00:00Z"
    for name in _OTHERS[run.kind]:
        if getattr(run, name):
            yield f"{path}.{name}", f"a run of kind {run.kind} has none"
    for index, item in enumerate(run.evidence or ()):
        if item.run is not None and item.run.kind == "claims":
            yield f"{path}.evidence[{index}].run.kind", "within a run of claims there are comparisons and sweeps"
        elif item.run is not None:
            yield from _faults(item.run, f"{path}.evidence[{index}].run")
    if run.kind == "sweep":
        yield from _faults_of_sweep(run, path)
    yield from _faults_of_body(run, run.request.strategies, path)


def _is_time(text: str) -> bool:
    try:
        return bool(_TIME.fullmatch(text) and datetime.fromisoformat(text))
    except ValueError:
        return False


def _faults_of_sweep(run: Run, path: str) -> Iterator[Fault]:
    names = [axis.name for axis in run.axes]
    if not run.axes:
        yield f"{path}.axes", "a sweep has one or two"
    yield from _twice(names, f"{path}.axes[{{}}].name")
    for index, axis in enumerate(run.axes):
        if any(low >= high for low, high in pairwise(axis.values)):
            yield f"{path}.axes[{index}].values", "they do not ascend"
        if axis.scale == "log" and axis.values[0] < 1:
            yield f"{path}.axes[{index}].values", "a log scale has whole numbers from 1 on"
    for index, point in enumerate(run.points):
        at = f"{path}.points[{index}].at"
        if sorted(point.at) != sorted(names):
            yield at, f"a value of {' and of '.join(names)} is needed, and of nothing else"
        for axis in run.axes:
            if not axis.values[0] <= point.at[axis.name] <= axis.values[-1]:
                yield f"{at}.{axis.name}", f"{point.at[axis.name]} is not on the axis"
        yield from _faults_of_body(point, run.request.strategies, f"{path}.points[{index}]")
    yield from _twice([tuple(point.at[name] for name in names) for point in run.points], f"{path}.points[{{}}].at")
    lines = {line_of(item.strategy, run.axes) for point in run.points for item in point.measurements}
    for index, crossover in enumerate(run.crossovers):
        its_path = f"{path}.crossovers[{index}]"
        yield from _unknown((crossover.a, crossover.b), lines, its_path)
        yield from _unknown((crossover.axis,), names, f"{its_path}.axis")
        ends = [value for value in (crossover.low, crossover.value, crossover.high) if value is not None]
        if len(ends) not in (0, 3) or (not ends) is not (crossover.none is not None):
            yield its_path, "either value, low and high are needed, or none, the reason why there are none"
        yield from _disordered(ends, its_path)
    for index, fit in enumerate(run.fits):
        yield from _unknown((fit.strategy,), lines, f"{path}.fits[{index}].strategy")
        yield from _unknown((fit.axis,), names, f"{path}.fits[{index}].axis")


def _faults_of_body(body: Run | Point, asked: Sequence[str], path: str) -> Iterator[Fault]:
    """The faults of what a comparison and a point of a sweep have in common."""
    by_slug = {item.strategy: item for item in body.measurements}
    named = {*by_slug, *asked}
    yield from _twice([item.strategy for item in body.measurements], f"{path}.measurements[{{}}].strategy")
    for index, item in enumerate(body.measurements):
        its_path = f"{path}.measurements[{index}]"
        yield from _faults_of_measurement(item, its_path)
        if item.twin_of is not None:
            yield from _unknown((item.twin_of,), by_slug, f"{its_path}.twin_of")
        yield from _unknown([pair.against for pair in item.break_even], named, f"{its_path}.break_even")
    ranked = [slug for group in body.ranking for slug in group]
    # Who wins at a point that is not measured may be inferred from the points around it.
    inferred = isinstance(body, Point) and not body.measurements
    yield from _unknown(ranked, {*asked} if inferred else by_slug, f"{path}.ranking")
    yield from _twice(ranked, f"{path}.ranking")
    if not all(body.ranking):
        yield f"{path}.ranking", "a group of it is empty"
    for slug in ranked if not inferred else ():
        if by_slug[slug].latency is None or by_slug[slug].twin_of is not None:
            yield f"{path}.ranking", f"{slug[:60]!r} has no latency that could be ranked"
    if body.control is not None:
        yield from _unknown((body.control.strategy,), named, f"{path}.control.strategy")


def _faults_of_measurement(item: Measurement, path: str) -> Iterator[Fault]:
    if item.code is not None:
        sha256 = hashlib.sha256(item.code.source.encode()).hexdigest()
        if item.code.sha256 not in (sha256, _NOT_HASHED):
            yield f"{path}.code.sha256", "it is not the hash of the source"
    for index, replica in enumerate(item.replicas):
        counted = (name for name in ("faults", "kernel_s", "cpu_s") if getattr(replica, name))
        yield from _unequal(replica, ("rounds", "at_s", "samples_s", *counted), f"{path}.replicas[{index}]")
    if item.latency is not None:
        yield from _disordered((item.latency.low_s, item.latency.median_s, item.latency.high_s), f"{path}.latency")
    if item.memory is not None and item.memory.timeline is not None:
        yield from _unequal(item.memory.timeline, ("t_s", "live_bytes"), f"{path}.memory.timeline")


def _unequal(part: Replica | Timeline, names: Sequence[str], path: str) -> Iterator[Fault]:
    lengths = [len(getattr(part, name)) for name in names]
    if len(set(lengths)) > 1:
        yield path, f"{', '.join(names)} have {', '.join(map(str, lengths))} values"


def _disordered(values: Sequence[float], path: str) -> Iterator[Fault]:
    if list(values) != sorted(values):
        yield path, f"{', '.join(map(str, values))} are not in ascending order"


def _unknown(names: Sequence[str], there: Collection[str], path: str) -> Iterator[Fault]:
    yield from ((path, f"there is no {name[:60]!r}") for name in names if name not in there)


def _twice(values: Sequence[Any], path: str) -> Iterator[Fault]:
    """The first value that has occurred before; ``path`` has a place for its number."""
    before = set()
    for index, value in enumerate(values):
        if value in before:
            yield path.format(index), f"{str(value)[:60]!r} occurs a second time"
        before.add(value)
