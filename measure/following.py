"""A run as it is followed in a terminal: what is said on stderr, once each."""

import contextlib
import logging
import sys
import time
from collections.abc import Iterator

from msgspec.structs import replace

from measure import runner
from measure.judge import advice
from measure.model.run import Measurement, Run
from measure.output import rows, sweep_table
from measure.sweep.lines import line_of

_NOT_SAVED = advice.not_saved("").code


def say(line: str) -> None:
    """A line on stderr; where nobody reads it any more, measuring goes on."""
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)


class HostFailed(Exception):
    """The measuring process does not start."""


def until_ready(own: runner.Runner, quiet: bool = False) -> None:
    """Wait until the devices are known, so that a request for another is refused before anything starts. Raises
    `HostFailed`."""
    said = ""
    while not (host := own.host()).devices:
        if host.state == "failed":
            raise HostFailed(f"nothing can be measured: {host.message}")
        if host.state == "restarting" and host.message != said and not quiet:
            said = host.message
            say(said)
        time.sleep(0.02)


@contextlib.contextmanager
def warnings_unlogged() -> Iterator[None]:
    """Log no trouble of the store, which comes again and again: here the run says it once."""
    log = logging.getLogger("mapbench")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def watch(own: runner.Runner, run_id: str, quiet: bool) -> None:
    """Say on stderr what happens, once each, until the run has finished."""
    said: set[tuple[str, str]] = set()
    last, doubt = "", ""
    while True:
        finished = own.wait(run_id, 0.2)
        snapshot = own.snapshot(run_id)
        assert snapshot is not None
        if not quiet:
            if snapshot.message and snapshot.message not in (last, "finished"):
                last = snapshot.message
                say(last)
            for warning in snapshot.run.warnings:
                if warning.code == _NOT_SAVED and warning.message != doubt:
                    doubt = warning.message
                    say(f"warning: {doubt}")
            for where, item in _outcomes(snapshot.run):
                if (where, item.strategy) not in said:
                    said.add((where, item.strategy))
                    say(f"  {where}{item.strategy}: {rows.outcome(item)}")
        if finished:
            return


def _outcomes(run: Run) -> Iterator[tuple[str, Measurement]]:
    """Yield what has become of strategies: of a comparison all; of a sweep, where that is not a latency."""
    for item in run.measurements:
        if item.twin_of is None and item.outcome != "not_run":
            yield "", item
    for point in run.points:
        for item in point.measurements:
            if item.outcome not in ("ok", "not_run"):
                yield f"{sweep_table.where(point)}: ", item


def kept_nowhere(run: Run, in_file: bool) -> tuple[Run, Run]:
    """A run that could not be written, as it goes into a file, and as it is told after the end of all tries."""
    others = [warning for warning in run.warnings if warning.code != _NOT_SAVED]
    said = [advice.not_kept(warning, in_file) for warning in run.warnings if warning.code == _NOT_SAVED]
    return replace(run, warnings=others), replace(run, warnings=[*others, *said])


def warnings(run: Run) -> Iterator[str]:
    """Yield the warnings of the run and of each strategy; what is said at several points of a sweep, once."""
    yield from (warning.message for warning in run.warnings)
    said = set()
    for item in (*run.measurements, *(item for point in run.points for item in point.measurements)):
        for warning in item.warnings:
            line = line_of(item.strategy, run.axes)
            if warning.code != "chosen" and (line, warning.code) not in said:
                said.add((line, warning.code))
                yield f"{item.strategy}: {warning.message}"
