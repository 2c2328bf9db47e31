"""Run files from elsewhere. Nothing in them is trusted: what is not valid is refused, with the path of the fault.

The types of a run (`measure.run.run`) hold the bounds of single values. What is checked here is what else could stop
whoever shows, exports or analyses a run. Its texts may still hold anything: whoever shows one escapes it. Its code is
text, and is never executed.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from typing import Any

from measure.run.encoding import decode
from measure.run.run import MOST_MEASUREMENTS, Point, Run

# A comparison takes some 100 kB, a sweep of many points a few MB, and one of 400 points and all strategies, each with a
# dozen rounds in five processes, 63 MiB. Reading one of those takes seconds and some 300 MiB: a server that serves
# strangers allows less.
MOST_BYTES = 80 * 2**20
# The fewest bytes of a large file for a value, and for an object or a list: so what is read takes no more than some
# five times its file.
_BYTES_OF_VALUE, _BYTES_OF_CONTAINER = 10, 100
# Of a run, a point or a strategy: all of them stand on the page.
_MOST_WARNINGS = 200
_LONGEST, _END = 900, 200  # signs of a refusal, and those of its end, which has the path
# Of a report, in which each run file stands between these, every `<` of it written as JSON can write it too.
MOST_RUNS = 100
RUN_BEGINS, RUN_ENDS = b'<script type="application/json" class="mapbench-run">', b"</script>"


def read_all(data: bytes, most_bytes: int = MOST_BYTES) -> list[Run]:
    """The run of a run file, or those of a report in HTML, which is searched and not parsed. Raises as `read` does."""
    if not data.lstrip().startswith(b"<"):
        return [read(data, most_bytes)]
    _check_size(data, most_bytes)
    files = [part.partition(RUN_ENDS)[0] for part in data.split(RUN_BEGINS, MOST_RUNS + 1)[1:]]
    if not 1 <= len(files) <= MOST_RUNS:
        held = f"more than {MOST_RUNS} runs" if files else "no run"
        raise ValueError(f"this is not a report of Mapbench: it holds {held}")
    runs = [read(file, most_bytes) for file in files]
    if len({run.id for run in runs}) < len(runs):
        raise ValueError("this is not a report of Mapbench: it holds a run twice")
    return runs


def read(data: bytes, most_bytes: int = MOST_BYTES) -> Run:
    """The run in a file from elsewhere, of so many bytes at most. Raises ValueError with one sentence that says what is
    wrong, and where."""
    try:
        _check_size(data, most_bytes)
        run = decode(data)
        for path, reason in faults(run, "$"):
            raise ValueError(f"this is not a valid run file: {reason} - at `{path}`")
    except ValueError as error:
        raise ValueError(_printable(str(error))) from None
    return run


def _check_size(data: bytes, most_bytes: int) -> None:
    """Refuse what is larger than a run can be, before it is parsed."""
    if len(data) > most_bytes:
        allowed = f"{most_bytes // 2**20} MiB are allowed{' on this server' if most_bytes < MOST_BYTES else ''}"
        raise ValueError(f"this file is too large: it has {len(data) / 2**20:.1f} MiB, and {allowed}")
    values, containers = data.count(b","), data.count(b"[") + data.count(b"{")
    if values > most_bytes // _BYTES_OF_VALUE or containers > most_bytes // _BYTES_OF_CONTAINER:
        raise ValueError("this file holds too many values to be a run")


def _printable(sentence: str) -> str:
    """A refusal for a terminal, in which no regular expression stands for what it says: what is no sign of a text is
    written as its code, and of a very long one the middle is left out."""
    words = re.sub(r"matching regex '.*?' - at", "of signs that are allowed there - at", sentence, flags=re.DOTALL)
    text = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in words)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - _END]}…{text[-_END:]}"


def faults(run: Run, path: str) -> Iterator[tuple[str, str]]:
    """The contradictions between parts of a run, each with its path as msgspec writes it. ``path``: of the run."""
    moments = {name: getattr(run, name) for name in ("created", "started", "finished")}
    moments |= {"decision.at": run.decision.at} if run.decision else {}
    for name, text in moments.items():
        if text is not None and not _is_time(text):
            yield f"{path}.{name}", f"{text[:60]!r} is not a time of day with its zone, as 2025-01-31T12:00:00Z"
    for index, item in enumerate(run.evidence or ()):
        if item.run is not None and (item.run.kind == "claims" or item.run.evidence):
            yield f"{path}.evidence[{index}].run.kind", "within a run of claims there are comparisons and sweeps"
        elif item.run is not None:
            yield from faults(item.run, f"{path}.evidence[{index}].run")
    bodies = [run, *(item.run for item in run.evidence or () if item.run is not None)]
    count = sum(len(body.measurements) + sum(len(point.measurements) for point in body.points) for body in bodies)
    if count > (most := MOST_MEASUREMENTS[1 if len(run.axes) == 1 else 2]):
        yield path, f"it holds {count:,} measurements, and {most:,} are allowed"
    if run.kind == "sweep" and not run.axes:
        yield f"{path}.axes", "a sweep has one or two"
    for index, axis in enumerate(run.axes):
        if any(low >= high for low, high in pairwise(axis.values)) or (axis.scale == "log" and axis.values[0] < 1):
            yield f"{path}.axes[{index}].values", "they have to ascend, and on a log scale from 1 on"
    places = set[str]()
    for index, point in enumerate(run.points):
        ends = {axis.name: (axis.values[0], axis.values[-1]) for axis in run.axes}
        if point.at.keys() != ends.keys():
            yield f"{path}.points[{index}].at", "a value of each axis is needed, and of nothing else"
        elif not all(low <= point.at[name] <= high for name, (low, high) in ends.items()):
            yield f"{path}.points[{index}].at", "it is not on the axes"
        if (place := str(sorted(point.at.items()))) in places:
            yield f"{path}.points[{index}].at", "there is another point at this place"
        places.add(place)
        yield from _faults_of_body(point, f"{path}.points[{index}]")
    yield from _faults_of_body(run, path)


def _is_time(text: str) -> bool:
    """True of a moment within a lifetime, of which computing leads to no other year than `datetime` has."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return False
    return moment.tzinfo is not None and 2000 <= moment.year < 2100


def _faults_of_body(body: Run | Point, path: str) -> Iterator[tuple[str, str]]:
    """The faults of what a comparison and a point of a sweep have in common."""
    by_slug = {item.strategy: item for item in body.measurements}
    if any(len(part.warnings) > _MOST_WARNINGS for part in (body, *body.measurements)):
        yield f"{path}.warnings", f"there are more than {_MOST_WARNINGS} of one part"
    for index, item in enumerate(body.measurements):
        if by_slug[item.strategy] is not item:
            yield f"{path}.measurements[{index}]", f"there is another {item.strategy[:60]!r}"
        if item.twin_of is not None and item.twin_of not in by_slug:
            yield f"{path}.measurements[{index}]", f"there is no {item.twin_of[:60]!r}"
        together: list[tuple[set[str], Any]] = []
        if item.memory is not None and item.memory.timeline is not None:
            together.append(({"t_s", "live_bytes"}, item.memory.timeline))
        for replica in item.replicas:
            counted = {name for name in ("faults", "kernel_s", "cpu_s") if getattr(replica, name)}
            together.append(({"rounds", "at_s", "samples_s"} | counted, replica))
        for names, part in together:
            if len({len(getattr(part, name)) for name in names}) > 1:
                yield f"{path}.measurements[{index}]", f"{', '.join(sorted(names))} are of different lengths"
    if isinstance(body, Point) and not body.measurements:
        return  # who wins at a point that is not measured may be inferred from the points around it
    ranked = [by_slug.get(slug) for group in body.ranking for slug in group]
    if not all(body.ranking) or not all(item and item.latency and item.twin_of is None for item in ranked):
        yield f"{path}.ranking", "a group of it is empty, or a strategy in it has no latency that could be ranked"
    if len(ranked) > len({id(item) for item in ranked}):
        yield f"{path}.ranking", "a strategy is in it twice"
