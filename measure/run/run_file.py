"""The run file as bytes: with the digests of its parts, and runs of every age in the form of today.

A digest is the first 16 digits of the SHA-256 of a part's JSON without blanks, the names in it sorted. By them an
accident and a thoughtless change are noticed; they prove nothing against whoever computes them anew.
"""

import hashlib
import re
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from measure.run import text
from measure.run.run import SCHEMA, Point, Run, Warning
from measure.run.slugs import with_options


class _Versioned(msgspec.Struct, frozen=True):
    schema: str = SCHEMA


_decoder = msgspec.json.Decoder(Run)
_version_decoder = msgspec.json.Decoder(_Versioned)
# Beyond this many bytes nobody reads a file, and its indentation would weigh as much as what it holds.
_READ_BY_PEOPLE = 4 * 2**20
# Fields that hold what arrived one after another have a digest for each item.
_OF_ITEMS = ("measurements", "points", "evidence")
# Of the parts that have changed, so many are named in a sentence.
_MOST_NAMED = 3


def encode(run: Run) -> bytes:
    """The run as JSON in UTF-8, indented where it is not large, with the digests of its parts."""
    if run.digest is not UNSET:
        fields = {name: getattr(run, name) for name in run.__struct_fields__}
        run = replace(run, digest=_digests({name: value for name, value in fields.items() if value is not UNSET}))
    data = msgspec.json.encode(run)
    return data if len(data) > _READ_BY_PEOPLE else msgspec.json.format(data, indent=1)


def decode(data: bytes) -> Run:
    """The run in ``data``, `upgraded`; ValueError with a sentence that names the path of the fault. A part that is not
    as its digest says costs nobody the others: the run has a warning, which names it and stays with the run."""
    try:
        # First, since a file of another schema may lack anything else.
        schema = _version_decoder.decode(data).schema
        if schema != SCHEMA:
            raise ValueError(f"schema {schema!r} is not known: {SCHEMA!r} is")
        run = _decoder.decode(data)
        if run.digest:
            paths = _changed(data, run.digest)
            run = replace(run, warnings=run.warnings + [_warning(paths)] * bool(paths), digest={})
        return upgraded(run)
    except msgspec.DecodeError as error:  # ValidationError is one
        raise ValueError(f"this is not a valid run file: {error}") from None
    except RecursionError:
        raise ValueError("this is not a valid run file: it is nested too deeply") from None


def _digests(fields: Mapping[str, Any]) -> dict[str, str | list[str]]:
    return {
        name: [_digest(item) for item in value] if name in _OF_ITEMS else _digest(value)
        for name, value in fields.items()
        if name != "digest"
    }


def _digest(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:16]


def _changed(data: bytes, written: dict[str, str | list[str]]) -> list[str]:
    """The paths of what is not as the digests in the file say."""
    now = _digests(msgspec.json.decode(data))
    paths = []
    for name in now | written:
        new, old = now.get(name), written.get(name)
        if isinstance(new, list) and isinstance(old, list):
            pairs = enumerate(zip_longest(new, old))
            paths += [f"$.{name}[{place}]" for place, (one, other) in pairs if one != other]
        elif new != old:
            paths.append(f"$.{name}")
    return paths


def _warning(paths: list[str]) -> Warning:
    return Warning(
        code="changed",
        message="this run's file was changed after it was written, by damage or by hand: "
        f"{text.listed(paths, _MOST_NAMED)} in it no longer matches its checksum, so what is shown of it may not be "
        "what was measured",
        values={"paths": paths},
    )


def upgraded(run: Run) -> Run:
    """A run of any age in the form of today. A swept option was once left out of the slugs at a sweep's points."""
    swept = {axis.name for axis in run.axes if axis.kind == "option"}
    return replace(run, points=[_with_options(point, swept) for point in run.points]) if swept else run


def _with_options(point: Point, swept: set[str]) -> Point:
    """The point with the values of swept options in its strategies' slugs."""
    slugs = {
        item.strategy: with_options(item.strategy, {name: item.options[name] for name in swept & {*item.options}})
        for item in point.measurements
        if item.twin_of is None
    }
    if all(old == new for old, new in slugs.items()):
        return point
    measurements = [
        replace(
            item,
            strategy=slugs.get(item.strategy, item.strategy),
            twin_of=slugs.get(item.twin_of or "", item.twin_of),
            break_even=[replace(pair, against=slugs.get(pair.against, pair.against)) for pair in item.break_even],
        )
        for item in point.measurements
    ]
    control = point.control and replace(
        point.control, strategy=slugs.get(point.control.strategy, point.control.strategy)
    )
    ranking = [[slugs.get(slug, slug) for slug in group] for group in point.ranking]
    # Made anew, the verdict would not have the intervals of the sweep: its slugs are replaced.
    longest_first = "|".join(map(re.escape, sorted(slugs, key=len, reverse=True)))
    verdict = re.sub(rf"(?<![\w.])({longest_first})(?![\w?]|\.\w)", lambda match: slugs[match[1]], point.verdict)
    return replace(point, measurements=measurements, control=control, ranking=ranking, verdict=verdict)
