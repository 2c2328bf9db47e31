"""The command line: the same measurements without a browser (`python -m measure`)."""

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

import workloads
from measure import environment, export_command, fit, listing, runner, table
from measure.request import DEFAULT_BUDGET_S, RequestError, parse
from measure.run import encode
from workloads.discovery import DiscoveryError

MEASURED, FAULT, INVALID, INTERRUPTED = 0, 1, 2, 3


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m measure", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    compare = commands.add_parser("compare", help="compare strategies for one workload at one size")
    compare.add_argument("workload", nargs="?", help="a workload's name, see 'list'; not needed with --workload-file")
    compare.add_argument("--workload-file", metavar="FILE", help="a workload of your own, in one Python file")
    compare.add_argument("--size", action="append", default=[], metavar="NAME=N", help="repeatable")
    compare.add_argument("--strategies", default="default", help="all, default, or a list of slugs, mappers and modes")
    compare.add_argument("--workload-option", action="append", default=[], metavar="NAME=VALUE")
    compare.add_argument("--dtype")
    compare.add_argument("--device", default="CPU:0")
    compare.add_argument("--budget", default=DEFAULT_BUDGET_S, metavar="SECONDS", help="time to measure for")
    compare.add_argument("--memory-limit", metavar="MIB", help="tensors beyond this fail as out of memory")
    compare.add_argument("--threads", metavar="N", help="TensorFlow's threads, within and between ops")
    compare.add_argument("--seed", default=0, help="seed of the inputs")
    compare.add_argument("--json", metavar="FILE", help="write the run here ('-' for stdout, in place of the table)")
    compare.add_argument("--quiet", action="store_true", help="no progress on stderr")

    listing = commands.add_parser("list", help="workloads, their sizes and defaults, strategies, devices")
    listing.add_argument("--json", action="store_true")

    export_command.add_to(commands.add_parser("export", help="write a run as JSON, CSV, Markdown, SVG or PNG"))
    return parser


def _pairs(name: str, items: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key or not value:
            raise RequestError(f"{name} {item!r} is not valid: write NAME=VALUE")
        pairs[key] = value
    return pairs


def _own_workload(arguments: argparse.Namespace) -> str:
    """The name of the workload in --workload-file, which from here on is one of the workloads."""
    path = os.path.abspath(arguments.workload_file)
    others = os.environ.get(workloads.VARIABLE, "")
    os.environ[workloads.VARIABLE] = os.pathsep.join(filter(None, [others, path]))
    own = workloads.in_file(path)
    if arguments.workload not in (None, own):
        raise RequestError(f"workload {arguments.workload!r} is not the one in {path}: that is {own!r}")
    return own


def _request(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "workload": _own_workload(arguments) if arguments.workload_file else arguments.workload,
        "workload_options": _pairs("--workload-option", arguments.workload_option),
        "size": _pairs("--size", arguments.size),
        "dtype": arguments.dtype,
        "device": arguments.device,
        "strategies": arguments.strategies,
        "budget_s": arguments.budget,
        "memory_limit_mib": arguments.memory_limit,
        "threads": arguments.threads,
        "seed": arguments.seed,
    }


def _compare(arguments: argparse.Namespace) -> int:
    request = parse(_request(arguments))
    # What is known to be wrong is said before anything is started.
    refusal = fit.check(request, environment.available_memory()) or _unwritable(arguments.json)
    if refusal:
        raise RequestError(refusal)
    own = runner.Runner(name=f"a command line, compare {request.workload}")
    interrupted = False
    try:
        _until_ready(own)
        run_id = own.submit(request)

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
    for warning in run.warnings:
        _say(f"warning: {warning.message}")
    for item in run.measurements:
        for warning in item.warnings:
            if warning.code != "chosen":
                _say(f"warning: {item.strategy}: {warning.message}")
    # Last, since whoever reads this may be gone.
    if arguments.json == "-":
        sys.stdout.buffer.write(encode(run) + b"\n")
    else:
        print(table.render(run))
    return status


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
    said: set[str] = set()
    last = ""
    while True:
        finished = own.wait(run_id, 0.2)
        snapshot = own.snapshot(run_id)
        assert snapshot is not None
        if not quiet:
            message = snapshot.message.partition(", round")[0]
            if message and message not in (last, "finished"):
                _say(message)
                last = message
            for item in snapshot.run.measurements:
                if item.twin_of is None and item.strategy not in said and item.outcome != "not_run":
                    said.add(item.strategy)
                    _say(f"  {item.strategy}: {table.outcome(item)}")
        if finished:
            return


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
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.command == "compare" and not (arguments.workload or arguments.workload_file):
        parser.error("a workload is needed: its name, or --workload-file")
    try:
        status = {"compare": _compare, "list": _list, "export": export_command.run}[arguments.command](arguments)
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
