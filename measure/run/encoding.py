"""The run file as bytes: with the digests of its parts, and runs of every age in the form of today.

A digest is the first 16 digits of the SHA-256 of a part's JSON without blanks, the names in it sorted. By them an
accident and a thoughtless change are noticed; they prove nothing against whoever computes them anew.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from measure.run import text
from measure.run.run import Point, Run, Warning
from measure.run.slugs import with_options

_decoder = msgspec.json.Decoder(Run)
# Beyond this many bytes nobody reads a file, and its indentation would weigh as much as what it holds.
_READ_BY_PEOPLE = 4 * 2**20
# What may be a strategy's slug, in a sentence; a text in JSON. A slug begins behind none of its own signs: so each sign
# of a hostile text is looked at a few times, and not once for each that is before it.
_SLUG = re.compile(r"(?<![\w.?=&])\w+(?:[.?=&]\w+)+(?![\w?]|\.\w)")
_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*"')
# Fields that hold what arrived one after another have a digest for each item.
_OF_ITEMS = ("measurements", "points", "evidence")


def encode(run: Run) -> bytes:
    """The run as JSON in UTF-8, indented where it is not large, with the digests of its parts."""
    if run.digest is not msgspec.UNSET:
        run = replace(run, digest=_digests(asdict(run)))
    data = msgspec.json.encode(run)
    return data if len(data) > _READ_BY_PEOPLE else msgspec.json.format(data, indent=1)


def decode(data: bytes) -> Run:
    """The run in ``data``, `upgraded`; ValueError with a sentence that names the path of the fault. A part that is not
    as its digest says costs nobody the others: the run has a warning, which names it and stays with the run."""
    try:
        run = _decoder.decode(data)
        if run.digest:
            changed = _changed(msgspec.json.decode(data), run.digest)
            run = replace(run, warnings=[*run.warnings, *changed], digest={})
        return upgraded(run)
    except msgspec.DecodeError as error:  # ValidationError is one
        if str(error).endswith("`$.schema`"):
            raise ValueError("this is no run file that this Mapbench knows: its schema is not mapbench.run/1") from None
        raise ValueError(f"this is not a valid run file: {error}") from None
    except RecursionError:
        raise ValueError("this is not a valid run file: it is nested too deeply") from None


def _digests(fields: Mapping[str, Any]) -> dict[str, str | list[str]]:
    return {
        name: [_digest(item) for item in value] if name in _OF_ITEMS else _digest(value)
        for name, value in fields.items()
        if name != "digest" and value is not msgspec.UNSET
    }


def _digest(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:16]


def _changed(fields: Mapping[str, Any], written: dict[str, str | list[str]]) -> Iterator[Warning]:
    """The warning that names the parts which are not as the digests in the file say, where there are any."""
    now, paths = _digests(fields), []
    for name in now | written:
        new, old = now.get(name), written.get(name)
        if isinstance(new, list) and isinstance(old, list):
            pairs = enumerate(zip_longest(new, old))
            paths += [f"$.{name}[{place}]" for place, (one, other) in pairs if one != other]
        elif new != old:
            paths.append(f"$.{name}")
    if paths:
        message = (
            "this run's file was changed after it was written, by damage or by hand: its checksums no longer fit "
            f"{text.listed(paths, 3)}, so what is shown of it may not be what was measured"
        )
        yield Warning(code="changed", message=message, values={"paths": paths})


def upgraded(run: Run) -> Run:
    """A run of any age in the form of today. A swept option was once left out of the slugs at a sweep's points."""
    swept = {axis.name for axis in run.axes if axis.kind == "option"}
    return replace(run, points=[_with_options(point, swept) for point in run.points]) if swept else run


def _with_options(point: Point, swept: set[str]) -> Point:
    slugs = {
        item.strategy: with_options(item.strategy, {name: item.options[name] for name in swept & {*item.options}})
        for item in point.measurements
        if item.twin_of is None
    }
    if all(old == new for old, new in slugs.items()):
        return point

    # Made anew, the verdict would not have the intervals of the sweep: its slugs are replaced.
    verdict = _SLUG.sub(lambda match: slugs.get(match[0], match[0]), point.verdict)
    quoted = {msgspec.json.encode(old): msgspec.json.encode(new) for old, new in slugs.items()}
    renamed = _QUOTED.sub(lambda match: quoted.get(match[0], match[0]), msgspec.json.encode(point))
    return replace(msgspec.json.decode(renamed, type=Point), verdict=verdict)
