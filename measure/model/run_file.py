"""The run file as bytes, and runs of every age in the form of today."""

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from measure.model import digest
from measure.model.run import SCHEMA, Point, Run, Warning
from measure.model.slugs import renamed, with_options


class _Versioned(msgspec.Struct, frozen=True):
    schema: str = SCHEMA


_decoder = msgspec.json.Decoder(Run)
_version_decoder = msgspec.json.Decoder(_Versioned)
# Beyond this many bytes nobody reads a file, and its indentation would weigh as much as what it holds.
_READ_BY_PEOPLE = 4 * 2**20

# Of the parts that have changed, so many are kept with the run.
_MOST_PATHS = 100


def encode(run: Run) -> bytes:
    """The run as JSON in UTF-8, indented where it is not large, with the digests of its parts."""
    data = msgspec.json.encode(run if run.digest is UNSET else replace(run, digest=digest.of_run(run)))
    return data if len(data) > _READ_BY_PEOPLE else msgspec.json.format(data, indent=1)


def decode(data: bytes) -> Run:
    """The run in ``data``, `upgraded`; ValueError with a sentence that names the path of the fault. A part that is not
    as its digest says costs nobody the others: the run has a warning, which names it and stays with the run."""
    try:
        # First, since a file of another schema may lack anything else.
        schema = _version_decoder.decode(data).schema
        if schema != SCHEMA:
            raise ValueError(f"schema {schema!r} is not known: {SCHEMA!r} is")
        return upgraded(_looked_at(_decoder.decode(data), data))
    except msgspec.DecodeError as error:  # ValidationError is one
        raise ValueError(f"this is not a valid run file: {error}") from None
    except RecursionError:
        raise ValueError("this is not a valid run file: it is nested too deeply") from None


def _looked_at(run: Run, data: bytes) -> Run:
    """The run without the digests themselves, and with a warning where one does not match."""
    if run.digest is UNSET or not run.digest:
        return run
    paths = digest.changed(data, run.digest)
    warnings = [*run.warnings, changed(paths)] if paths else run.warnings
    return replace(run, warnings=warnings, digest={})


def changed(paths: list[str]) -> Warning:
    """Parts of the file are not as they were written."""
    return Warning(
        code="changed",
        message=f"this run's file was changed after it was written, by damage or by hand: {digest.named(paths)} in it "
        "no longer matches its checksum, so what is shown of it may not be what was measured",
        values={"paths": paths[:_MOST_PATHS]},
    )


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
