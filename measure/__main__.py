"""The command line: the same measurements without a browser (`python -m measure`; installed, `mapbench` too)."""

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

import workloads
from measure import runner
from measure.arguments import compare_request, given, pair_to_ask, parser, sweep_request, sweep_to_continue
from measure.claims import known
from measure.claims import table as table_of_claims
from measure.claims.tries import chosen
from measure.judge import reasons
from measure.machine import environment
from measure.model import fit, listing, text
from measure.model.request import RequestError, parse_seed
from measure.model.run import Measurement, Point, Run
from measure.model.run_file import encode
from measure.output import export, export_command, rows, sweep_table, table
from measure.sweep import continuing, places
from measure.sweep.lines import line_of
from measure.sweep.needs import forecast_sweep
from measure.sweep.request import of_run
from workloads.discovery import DiscoveryError

MEASURED, FAULT, INVALID, INTERRUPTED = 0, 1, 2, 3


def _compare(arguments: argparse.Namespace, own: runner.Runner | None) -> int:
    request = compare_request(arguments)
    # What is known to be wrong is said before anything is started.
    if refusal := fit.check(request, environment.available_memory()):
        raise RequestError(refusal)

    def render(run: Run) -> str:
        explained = ["", "Why", *reasons.sentences(run).values()] if arguments.why else []
        return "\n".join([table.render(run), *explained])

    name = f"compare {request.record().title}"
    return _measure(arguments, own, name, lambda own: own.submit(request, why=arguments.why), render)


def _sweep(arguments: argparse.Namespace, own: runner.Runner | None) -> int:
    taken: list[Point] = []
    if arguments.continue_from:
        before = sweep_to_continue(arguments)
        request = of_run(before)
        taken = continuing.points_kept(before, request)
    else:
        request = sweep_request(arguments)
    pair = pair_to_ask(arguments, request)
    needs = forecast_sweep(request, environment.available_memory(), taken)
    if not arguments.quiet:
        _say(f"forecast: about {text.seconds(needs.seconds)}, at most about {text.size(needs.peak_bytes)}")
        for at, reason in needs.skipped:
            _say(f"  {places.written(at)} is skipped: {reason}")
        for said in needs.strategies_left_out():
            _say(f"  {said}")
    return _measure(
        arguments,
        own,
        f"sweep {request.base.record().title}",
        lambda own: own.submit_sweep(request, continue_from=arguments.continue_from),
        lambda run: sweep_table.render(run, pair),
    )


def _claims(arguments: argparse.Namespace) -> int:
    for file, reason in known.broken().items():
        _say(f"warning: the claims of {file} are left out: {reason}")
    if arguments.all and arguments.claim:
        raise RequestError("--all tries every claim: leave out the ids, or --all")
    if not arguments.claim and not arguments.all:
        if arguments.markdown:
            raise RequestError("--markdown prints verdicts: name claims, or --all")
        return _list_claims(arguments.json)
    chosen(arguments.claim)  # what is not known is said before anything is started

    def render(run: Run) -> str:
        return export.markdown(run).rstrip("\n") if arguments.markdown else table_of_claims.render(run)

    return _measure(arguments, None, "claims", lambda own: own.submit_claims(arguments.claim), render)


def _list_claims(file: str | None) -> int:
    if file is None:
        print(table_of_claims.listed())
        return MEASURED
    data = msgspec.json.format(msgspec.json.encode(table_of_claims.listing()), indent=1) + b"\n"
    if refusal := _unwritable(file):
        raise RequestError(refusal)
    if file == "-":
        sys.stdout.buffer.write(data)
    else:
        Path(file).write_bytes(data)
    return MEASURED


@contextlib.contextmanager
def _with_function(arguments: argparse.Namespace) -> Iterator[runner.Runner | None]:
    """Have a function of a person's own, if one is named, looked at: from here on it is one of the workloads. The
    runner that did so; None where a workload is named."""
    function = given(arguments)
    if function is None:
        yield None
        return
    own = runner.Runner(name=f"a command line, {arguments.command} {function.function}")
    try:
        slug = own.give(function, seed=parse_seed(arguments.seed))
        if not arguments.quiet:
            _say(workloads.get(slug).summary)
        if not (arguments.command == "sweep" and arguments.continue_from):  # which takes it from the sweep
            arguments.workload = slug
        yield own
    finally:
        own.close()


def _measure(
    arguments: argparse.Namespace,
    own: runner.Runner | None,
    name: str,
    submit: Callable[[runner.Runner], str],
    render: Callable[[Run], str],
) -> int:
    """Have a runner measure what is submitted, and write the outcome."""
    if refusal := _unwritable(arguments.json):
        raise RequestError(refusal)
    own = own or runner.Runner(name=f"a command line, {name}")
    interrupted = False
    try:
        _until_ready(own)
        run_id = submit(own)

        def stop(*_: Any) -> None:
            nonlocal interrupted
            interrupted = True
            own.cancel(run_id)

        signal.signal(signal.SIGINT, stop)
        signal.signal(signal.SIGTERM, stop)
        _watch(own, run_id, quiet=arguments.quiet)
        snapshot = own.snapshot(run_id)
    finally:
        own.close()
    assert snapshot is not None
    run = snapshot.run
    status = INTERRUPTED if interrupted or run.status in ("cancelled", "interrupted") else MEASURED
    status = FAULT if snapshot.fault else status
    if arguments.json and arguments.json != "-":
        try:
            Path(arguments.json).write_bytes(encode(run) + b"\n")
        except OSError as error:
            _say(f"error: --json {arguments.json} cannot be written: {error.strerror}; the run is kept as {run.id}")
            status = FAULT
    if run.kind == "sweep" or arguments.json == "-":  # what is printed of a comparison holds them
        for line in _warnings(run):
            _say(f"warning: {line}")
    if run.kind == "sweep" and continuing.is_open(run):
        _say(f"it can be continued: python -m measure sweep --continue {run.id}")
    # Last, since whoever reads this may be gone.
    if arguments.json == "-":
        sys.stdout.buffer.write(encode(run) + b"\n")
    else:
        print(render(run))
    return status


def _warnings(run: Run) -> Iterator[str]:
    """Yield the warnings of the run and of each strategy; what is said at several points of a sweep, once."""
    yield from (warning.message for warning in run.warnings)
    said = set()
    for item in (*run.measurements, *(item for point in run.points for item in point.measurements)):
        for warning in item.warnings:
            line = line_of(item.strategy, run.axes)
            if warning.code != "chosen" and (line, warning.code) not in said:
                said.add((line, warning.code))
                yield f"{item.strategy}: {warning.message}"


def _unwritable(file: str | None) -> str | None:
    """The sentence that says why the run cannot be written into this file, as far as can be known beforehand."""
    if file is None or file == "-":
        return None
    path = Path(file)
    if path.is_dir():
        return f"--json {file} cannot be written: it is a folder"
    if not path.resolve().parent.is_dir():
        return f"--json {file} cannot be written: its folder does not exist"
    if not os.access(path if path.exists() else path.resolve().parent, os.W_OK):
        return f"--json {file} cannot be written: permission denied"
    return None


def _say(line: str) -> None:
    """A line on stderr; where nobody reads it any more, measuring goes on."""
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def _until_ready(own: runner.Runner) -> None:
    """Wait until the devices are known, so that a request for another is refused before anything starts."""
    while not own.host().devices and own.host().state in ("starting", "restarting"):
        time.sleep(0.02)


def _watch(own: runner.Runner, run_id: str, quiet: bool) -> None:
    """Say on stderr what happens, once each, until the run has finished."""
    said: set[tuple[str, str]] = set()
    last = ""
    while True:
        finished = own.wait(run_id, 0.2)
        snapshot = own.snapshot(run_id)
        assert snapshot is not None
        if not quiet:
            if snapshot.message and snapshot.message not in (last, "finished"):
                last = snapshot.message
                _say(last)
            for where, item in _outcomes(snapshot.run):
                if (where, item.strategy) not in said:
                    said.add((where, item.strategy))
                    _say(f"  {where}{item.strategy}: {rows.outcome(item)}")
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


def _list(arguments: argparse.Namespace) -> int:
    own = runner.Runner(name="a command line, list")
    try:
        _until_ready(own)
        devices = own.host().devices
    finally:
        own.close()
    if arguments.json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(listing.grid(devices)), indent=1) + b"\n")
    else:
        print("\n".join(listing.lines(devices)))
    for message in listing.broken().values():
        _say(f"warning: {message}")
    return MEASURED


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 measured, 2 the request is invalid, 3 interrupted, 1 a fault."""
    whole = parser()
    arguments = whole.parse_args(argv)
    continued = arguments.command == "sweep" and arguments.continue_from
    if arguments.command in ("compare", "sweep") and not (arguments.workload or arguments.workload_file or continued):
        whole.error("a workload is needed: its name, or --workload-file")
    try:
        if arguments.command in ("compare", "sweep"):
            with _with_function(arguments) as own:
                status = (_compare if arguments.command == "compare" else _sweep)(arguments, own)
        else:
            command = {"list": _list, "export": export_command.run, "claims": _claims}[arguments.command]
            status = command(arguments)
        sys.stdout.flush()
        return status
    except (RequestError, DiscoveryError) as error:
        _say(f"error: {error}")
        return INVALID
    except KeyboardInterrupt:
        _say("interrupted before anything was measured")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the table has enough. Python would complain when it flushes the rest at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return MEASURED


if __name__ == "__main__":
    sys.exit(main())
