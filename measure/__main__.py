"""The command line: the same measurements without a browser (`python -m measure`)."""

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
from msgspec.structs import replace

import workloads
from measure import runner
from measure.judge import reasons
from measure.machine import environment
from measure.model import fit, listing, text
from measure.model.request import DEFAULT_BUDGET_S, RequestError, parse, parse_budget
from measure.model.run import Measurement, Point, Run, encode
from measure.output import export_command, rows, sweep_table, table
from measure.sweep import continuing
from measure.sweep.forecast import forecast_sweep
from measure.sweep.request import DEFAULT_BUDGET_S as SWEEP_BUDGET_S
from measure.sweep.request import of_run, parse_sweep
from workloads.discovery import DiscoveryError

MEASURED, FAULT, INVALID, INTERRUPTED = 0, 1, 2, 3


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m measure", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    compare = commands.add_parser("compare", help="compare strategies for one workload at one size")
    compare.add_argument("--size", action="append", default=[], metavar="NAME=N", help="repeatable")
    _add_case(compare)
    compare.add_argument("--budget", default=DEFAULT_BUDGET_S, metavar="SECONDS", help="time to measure for")
    _add_output(compare)
    compare.add_argument("--why", action="store_true", help="explain each strategy in the end")

    sweep = commands.add_parser("sweep", help="compare strategies over ranges of sizes or options")
    sweep.add_argument(
        "--size",
        action="append",
        default=[],
        metavar="NAME=RANGE",
        help="1:1000, with 9 points 1:1000:9, values 1,2,8, or one number for a size that stays; repeatable",
    )
    sweep.add_argument(
        "--option", action="append", default=[], metavar="NAME=RANGE", help="of strategies, as chunk=1:64; repeatable"
    )
    sweep.add_argument("--points", metavar="N", help="of each range that names no number of points (9; of two axes 5)")
    sweep.add_argument("--scale", default="log", help="log or linear")
    _add_case(sweep)
    sweep.add_argument("--budget", metavar="SECONDS", help=f"time for the whole sweep ({SWEEP_BUDGET_S:.0f})")
    sweep.add_argument(
        "--continue",
        dest="continue_from",
        metavar="ID",
        help="go on with a sweep that ended early, as it was asked",
    )
    _add_output(sweep)

    listing = commands.add_parser("list", help="workloads, their sizes and defaults, strategies, devices")
    listing.add_argument("--json", action="store_true")

    export_command.add_to(commands.add_parser("export", help="write a run, its charts or its explanations as files"))
    return parser


def _add_case(command: argparse.ArgumentParser) -> None:
    command.add_argument("workload", nargs="?", help="a workload's name, see 'list'; not needed with --workload-file")
    command.add_argument("--workload-file", metavar="FILE", help="a workload of your own, in one Python file")
    command.add_argument("--strategies", default="default", help="all, default, or a list of slugs, mappers and modes")
    command.add_argument("--workload-option", action="append", default=[], metavar="NAME=VALUE")
    command.add_argument("--dtype")
    command.add_argument("--device", default="CPU:0")
    command.add_argument("--memory-limit", metavar="MIB", help="tensors beyond this fail as out of memory")
    command.add_argument("--threads", metavar="N", help="TensorFlow's threads, within and between ops")
    command.add_argument("--seed", default=0, help="seed of the inputs")


def _add_output(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", metavar="FILE", help="write the run here ('-' for stdout, in place of the table)")
    command.add_argument("--quiet", action="store_true", help="no progress on stderr")


def _pairs(name: str, items: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key or not value:
            raise RequestError(f"{name} {item!r} is not valid: write NAME=VALUE")
        if key in pairs:
            raise RequestError(f"{name} gives {key} twice: give it once")
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


def _request(arguments: argparse.Namespace, size: dict[str, str]) -> dict[str, Any]:
    return {
        "workload": _own_workload(arguments) if arguments.workload_file else arguments.workload,
        "workload_options": _pairs("--workload-option", arguments.workload_option),
        "size": size,
        "dtype": arguments.dtype,
        "device": arguments.device,
        "strategies": arguments.strategies,
        "budget_s": arguments.budget,
        "memory_limit_mib": arguments.memory_limit,
        "threads": arguments.threads,
        "seed": arguments.seed,
    }


def _compare(arguments: argparse.Namespace) -> int:
    request = parse(_request(arguments, _pairs("--size", arguments.size)))
    # What is known to be wrong is said before anything is started.
    if refusal := fit.check(request, environment.available_memory()):
        raise RequestError(refusal)

    def render(run: Run) -> str:
        explained = ["", "Why", *reasons.sentences(run).values()] if arguments.why else []
        return "\n".join([table.render(run), *explained])

    return _measure(
        arguments, f"compare {request.workload}", lambda own: own.submit(request, why=arguments.why), render
    )


def _sweep(arguments: argparse.Namespace) -> int:
    taken: list[Point] = []
    if arguments.continue_from:
        before = _continued(arguments)
        request = of_run(before)
        taken = continuing.points_kept(before, request)
    else:
        request = parse_sweep(_sweep_request(arguments))
    needs = forecast_sweep(request, environment.available_memory(), taken)
    if not arguments.quiet:
        _say(f"forecast: about {text.seconds(needs.seconds)}, at most about {text.size(needs.peak_bytes)}")
        for at, reason in needs.skipped:
            _say(f"  {', '.join(f'{name}={value}' for name, value in at.items())} is skipped: {reason}")
        for said in needs.strategies_left_out():
            _say(f"  {said}")
    return _measure(
        arguments,
        f"sweep {request.base.workload}",
        lambda own: own.submit_sweep(request, continue_from=arguments.continue_from),
        sweep_table.render,
    )


def _sweep_request(arguments: argparse.Namespace) -> dict[str, Any]:
    """A size or an option with several values is an axis; a size with one value is fixed."""
    sizes, axes = {}, []
    for name, value in _pairs("--size", arguments.size).items():
        if ":" in value or "," in value:
            axes.append({"kind": "size", "name": name, "range": value})
        else:
            sizes[name] = value
    for name, value in _pairs("--option", arguments.option).items():
        axes.append({"kind": "option", "name": name, "range": value})
    more = {"scale": arguments.scale, "points": arguments.points}
    return {**_request(arguments, sizes), "axes": [{**axis, **more} for axis in axes]}


def _continued(arguments: argparse.Namespace) -> Run:
    """A kept sweep, with the budget that is given."""
    if arguments.workload or arguments.size or arguments.option:
        raise RequestError("--continue takes workload, sizes and options from the sweep: leave them out")
    found = export_command.kept(arguments.continue_from)
    if arguments.workload_file and (own := _own_workload(arguments)) != found.request.workload:
        raise RequestError(
            f"run {found.id} is of the workload {found.request.workload!r}, not of {own!r} in {arguments.workload_file}"
        )
    if found.request.workload not in workloads.names():
        raise RequestError(
            f"run {found.id} is of the workload {found.request.workload!r}, which is not here: "
            "where it is in a file of your own, name that by --workload-file"
        )
    if arguments.budget is not None:
        found = replace(found, request=replace(found.request, budget_s=parse_budget(arguments.budget)))
    return found


def _measure(
    arguments: argparse.Namespace, name: str, submit: Callable[[runner.Runner], str], render: Callable[[Run], str]
) -> int:
    """Have a runner measure what is submitted, and write the outcome."""
    if refusal := _unwritable(arguments.json):
        raise RequestError(refusal)
    own = runner.Runner(name=f"a command line, {name}")
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
    """Of the run, and of each strategy; what is said at several points of a sweep, once."""
    yield from (warning.message for warning in run.warnings)
    said = set()
    for item in (*run.measurements, *(item for point in run.points for item in point.measurements)):
        for warning in item.warnings:
            if warning.code != "chosen" and (item.strategy, warning.code) not in said:
                said.add((item.strategy, warning.code))
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
            message = snapshot.message.partition(", round")[0]
            if message and message not in (last, "finished"):
                _say(message)
                last = message
            for where, item in _outcomes(snapshot.run):
                if (where, item.strategy) not in said:
                    said.add((where, item.strategy))
                    _say(f"  {where}{item.strategy}: {rows.outcome(item)}")
        if finished:
            return


def _outcomes(run: Run) -> Iterator[tuple[str, Measurement]]:
    """What has become of strategies: all of a comparison; of a sweep, where that is not a latency."""
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
    parser = _parser()
    arguments = parser.parse_args(argv)
    continued = arguments.command == "sweep" and arguments.continue_from
    if arguments.command in ("compare", "sweep") and not (arguments.workload or arguments.workload_file or continued):
        parser.error("a workload is needed: its name, or --workload-file")
    try:
        commands = {"compare": _compare, "sweep": _sweep, "list": _list, "export": export_command.run}
        status = commands[arguments.command](arguments)
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
