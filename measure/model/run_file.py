"""The run file as bytes, and runs of every age in the form of today."""

import msgspec
from msgspec.structs import replace

from measure.model.run import SCHEMA, Point, Run, Struct
from measure.model.slugs import renamed, with_options


class _Versioned(Struct, frozen=True):
    schema: str = SCHEMA


_decoder = msgspec.json.Decoder(Run)
_version_decoder = msgspec.json.Decoder(_Versioned)
# Beyond this many bytes nobody reads a file, and its indentation would weigh as much as what it holds.
_READ_BY_PEOPLE = 4 * 2**20


def encode(run: Run) -> bytes:
    """The run as JSON in UTF-8, indented where it is not large."""
    data = msgspec.json.encode(run)
    return data if len(data) > _READ_BY_PEOPLE else msgspec.json.format(data, indent=1)


def decode(data: bytes) -> Run:
    """The run in ``data``, `upgraded`; ValueError with a sentence that names the path of the fault."""
    try:
        # First, since a file of another schema may lack anything else.
        schema = _version_decoder.decode(data).schema
        if schema != SCHEMA:
            raise ValueError(f"schema {schema!r} is not known: {SCHEMA!r} is")
        return upgraded(_decoder.decode(data))
    except msgspec.DecodeError as error:  # ValidationError is one
        raise ValueError(f"this is not a valid run file: {error}") from None
    except RecursionError:
        raise ValueError("this is not a valid run file: it is nested too deeply") from None


def upgraded(run: Run) -> Run:
    """A run of any age in the form of today. A swept option was once left out of the slugs at a sweep's points."""
    swept = {axis.name for axis in run.axes if axis.kind == "option"}
    return replace(run, points=[_with_options(point, swept) for point in run.points]) if swept else run


def _with_options(point: Point, swept: set[str]) -> Point:
    """The point with the values of swept options in its strategies' slugs."""
    now = {
        item.strategy: with_options(item.strategy, {name: item.options[name] for name in swept & {*item.options}})
        for item in point.measurements
        if item.twin_of is None
    }
    measurements = [
        replace(
            item,
            strategy=now.get(item.strategy, item.strategy),
            twin_of=now.get(item.twin_of or "", item.twin_of),
            break_even=[replace(pair, against=now.get(pair.against, pair.against)) for pair in item.break_even],
        )
        for item in point.measurements
    ]
    control = point.control and replace(point.control, strategy=now.get(point.control.strategy, point.control.strategy))
    ranking = [[now.get(slug, slug) for slug in group] for group in point.ranking]
    verdict = renamed(point.verdict, now)  # made anew, it would not have the intervals of the sweep
    return replace(point, measurements=measurements, control=control, ranking=ranking, verdict=verdict)
