"""The arguments of the command line: what can be written, and the request that is meant by it."""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import structs

import strategies
import workloads
from measure import admin
from measure.engine import deriving
from measure.engine.gate import BUDGET_S, STRATEGIES
from measure.making import to_continue
from measure.output import decide_command, export_command
from measure.run import place
from measure.run.request import (
    ALL_MACHINES,
    ALLOCATORS,
    AUTO,
    DEFAULT_BUDGET_S,
    MAX_AUTO_S,
    Request,
    RequestError,
    parse,
    parse_budget,
)
from measure.run.sweep_request import DEFAULT_BUDGET_S as SWEEP_BUDGET_S
from measure.run.sweep_request import SweepRequest, of_run, parse_sweep
from measure.store.store import Store
from workloads import elems_file
from workloads.functions import Given

_SEVERAL: Any = {"action": "append", "default": []}


def parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    """The arguments of a command. Ends the process with the usage where they are none."""
    whole = parser()
    arguments = whole.parse_args(argv)
    if arguments.command in ("compare", "sweep") and not (
        arguments.workload or arguments.workload_file or getattr(arguments, "continue_from", None)
    ):
        whole.error("a workload is needed: its name, or --workload-file")
    return arguments


def parser() -> argparse.ArgumentParser:
    name = "mapbench" if Path(sys.argv[0]).stem == "mapbench" else "python -m measure"
    whole = argparse.ArgumentParser(prog=name, description="The same measurements as on the pages, without a browser.")
    commands = whole.add_subparsers(dest="command", required=True)

    compare = commands.add_parser("compare", help="compare strategies for one workload at one size")
    compare.add_argument("--size", **_SEVERAL, metavar="NAME=N", help="repeatable")
    _add_case(
        compare,
        f"time until the verdict; auto: about {DEFAULT_BUDGET_S:.0f}, up to {MAX_AUTO_S:.0f} while the answer is not "
        "usable (auto)",
    )
    compare.add_argument("--why", action="store_true", help="explain each strategy in the end")

    sweep = commands.add_parser("sweep", help="compare strategies over ranges of sizes or options")
    ranges = "1:1000, with 9 points 1:1000:9, values 1,2,8, or one number that stays; repeatable"
    sweep.add_argument("--size", **_SEVERAL, metavar="NAME=RANGE", help=ranges)
    sweep.add_argument("--option", **_SEVERAL, metavar="NAME=RANGE", help="of strategies, as chunk=1:64; repeatable")
    sweep.add_argument("--points", metavar="N", help="of each range that names no number of points (9; of two axes 5)")
    sweep.add_argument("--scale", default="log", help="log or linear")
    _add_case(sweep, f"time for the whole sweep ({SWEEP_BUDGET_S:.0f})")
    sweep.add_argument("--continue", dest="continue_from", metavar="ID", help="go on with a sweep that ended early")
    sweep.add_argument("--pair", nargs=2, default=(), metavar="STRATEGY", help="where the first overtakes the second")

    claims = commands.add_parser("claims", help="try what is said about mapping, and say what is true here")
    claims.add_argument("claim", nargs="*", help="ids of claims; none lists them")
    claims.add_argument("--list", action="store_true", help="list them, as without a name")
    claims.add_argument("--all", action="store_true", help="try all of them")
    claims.add_argument("--markdown", action="store_true", help="print verdicts as Markdown")
    gate = commands.add_parser("gate", help="fail where a change is shown to be slower than what was there before")
    sides = "a run file or an id; with --function a folder, a revision of git, or another environment's Python"
    gate.add_argument("base", metavar="BASE", help=sides)
    gate.add_argument("head", metavar="HEAD", nargs="?", help="the same (with --function: the current folder)")
    gate.add_argument("--max-regression", metavar="SHARE", default="5%", help="so much slower HEAD may be (5%%)")
    gate.add_argument("--max-memory", metavar="SHARE", help="so much more memory it may need (as --max-regression)")
    gate.add_argument("--leader", action="store_true", help="judge the fastest strategy of each side alone")
    gate.add_argument("--lenient", action="store_true", help="exit with 0 where it cannot tell")
    gate.add_argument("--baseline", metavar="STRATEGY", help="of two runs: what the others are relative to")
    gate.add_argument("--size", **_SEVERAL, metavar="NAME=N", help="repeatable")
    _add_case(gate, f"time until the verdict ({BUDGET_S:.0f})", is_gate=True)
    for option, what in (("--markdown", "for a pull request"), ("--junit", "as a report of tests")):
        gate.add_argument(option, metavar="FILE", help=f"write the result here, {what} ('-': stdout)")
    for command, what in ((compare, "run"), (sweep, "run"), (claims, "run"), (gate, "result")):
        command.add_argument(
            "--json", metavar="FILE", help=f"write the {what} here ('-': stdout, in place of the table)"
        )
        if command in (compare, sweep):
            machine = "measure there, and not here: a machine of the dashboard's, or all"
            command.add_argument("--machine", metavar="NAME", help=machine)
        command.add_argument("--quiet", action="store_true", help="no progress on stderr")

    diff = commands.add_parser("diff", help="put two comparisons beside each other")
    for which in ("first", "second"):
        diff.add_argument(which, help="a run file, or the id of a run that is kept")
    diff.add_argument("--baseline", metavar="STRATEGY", help="what the others are relative to in both")
    export_command.add_report_to(commands.add_parser("report", help="write runs as one HTML file"))

    listing = commands.add_parser("list", help="workloads, their sizes and defaults, strategies, devices")
    listing.add_argument("--json", action="store_true")
    worker = commands.add_parser("worker", help="measure what waits in the store, apart from the server of the pages")
    worker.add_argument("scheduler", nargs="?", help="measure for the dashboard at a Dask scheduler, tcp://HOST:PORT")
    worker.add_argument("--name", help="of this machine, where it is one of several (its host's name)")
    worker.add_argument("--python", metavar="FILE", help="measure the TensorFlow of another environment, by its Python")
    worker.add_argument("--own-code", action="store_true", help="execute functions that come from a scheduler")
    export_command.add_to(commands.add_parser("export", help="write a run, its charts or its explanations as files"))
    decide_command.add_to(commands.add_parser("decide", help="write what was decided on a run, or show it"))
    admin.add_to(commands.add_parser("admin", help="an operator's: list, end, pin and delete runs, drain"))
    return whole


def _add_case(command: argparse.ArgumentParser, budget: str, *, is_gate: bool = False) -> None:
    """``is_gate``: a function of a person's own alone can be asked for."""
    workload = "a workload's name, see 'list', or a function of your own as FILE.py:FUNCTION"
    if is_gate:
        workload = "your function, which is measured as it is in BASE and in HEAD"
        command.add_argument("--function", dest="workload", metavar="FILE.py:FUNCTION", help=workload)
    else:
        command.add_argument("workload", nargs="?", help=workload)
        command.add_argument("--workload-file", metavar="FILE", help="a workload of your own, in one Python file")
    for option, metavar, text in (
        ("--elems", "NAME", "what your function is mapped over: a name in its file, or a file .npy or .npz"),
        ("--batched", "NAME", "your rewrite for the whole batch, in the same file"),
        ("--reference", "NAME", "your reference in NumPy, for the whole batch"),
        ("--budget", "SECONDS", budget),
        ("--memory-limit", "MIB", "tensors beyond this fail as out of memory"),
        ("--threads", "N", "TensorFlow's threads, within and between ops"),
    ):
        command.add_argument(option, metavar=metavar, help=text)
    usual = ",".join(STRATEGIES) if is_gate else "default"
    command.add_argument("--strategies", default=usual, help="all, default, or a list of slugs, mappers and modes")
    command.add_argument("--workload-option", **_SEVERAL, metavar="NAME=VALUE")
    command.add_argument("--dtype")
    command.add_argument("--device", default="CPU:0")
    pool = "pool: freed memory stays in the process; default: as TensorFlow and the C library do it"
    command.add_argument("--allocator", metavar="|".join(ALLOCATORS), default="pool", help=pool)
    command.add_argument("--seed", default=0, help="seed of the inputs")


def check_file(option: str, file: str) -> None:
    """Raise `RequestError` where the file that an option names cannot be written."""
    path = Path(file).resolve()
    if file != "-" and (path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK)):
        raise RequestError(
            f"--{option} {file} cannot be written: a file in a folder that is there and writable is needed"
        )


def write_file(option: str, file: str, data: bytes) -> None:
    """Write a line or more where an option says, `-` for stdout. Raises `RequestError` where it cannot be written."""
    if file == "-":
        sys.stdout.buffer.write(data + b"\n")
        return
    try:
        place.write(Path(file), [data, b"\n"])
    except OSError as error:
        raise RequestError(f"--{option} {file} cannot be written: {error.strerror}") from None


def compare_request(arguments: argparse.Namespace) -> Request:
    """The comparison that is asked for. Raises `RequestError`, as the others here do."""
    return parse(_request(arguments, _pairs("--size", arguments.size)))


def sweep_request(arguments: argparse.Namespace) -> SweepRequest:
    """The sweep that is asked for. A size with several values is an axis, and so is an option; others are fixed."""
    if arguments.continue_from:
        request = _continued(arguments)
    else:
        sizes, axes = {}, []
        for name, value in _pairs("--size", arguments.size).items():
            if ":" in value or "," in value:
                axes.append({"kind": "size", "name": name, "range": value})
            else:
                sizes[name] = value
        for name, value in _pairs("--option", arguments.option).items():
            axes.append({"kind": "option", "name": name, "range": value})
        more = {"scale": arguments.scale, "points": arguments.points}
        request = parse_sweep({**_request(arguments, sizes), "axes": [{**axis, **more} for axis in axes]})
    if arguments.pair and len(request.axes) > 1:
        raise RequestError("--pair asks about lines that cross: sweep one size or option, not two")
    for slug in arguments.pair:
        if slug not in request.base.strategies:
            raise RequestError(f"--pair names {slug!r}, which is not swept: {', '.join(request.base.strategies)} are")
    return request


def _continued(arguments: argparse.Namespace) -> SweepRequest:
    """The kept sweep that is to be continued, with the budget that is given."""
    if arguments.workload or arguments.size or arguments.option:
        raise RequestError("--continue takes workload, sizes and options from the sweep: leave them out")
    if arguments.workload_file:
        _own_workload(arguments.workload_file)
    asked = of_run(to_continue(Store(), arguments.continue_from))
    if arguments.budget in (None, AUTO):
        return asked
    return replace(asked, base=structs.replace(asked.base, budget_s=parse_budget(arguments.budget)))


def _pairs(name: str, items: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for item in items:
        key, _, pairs[key] = item.partition("=")
        if not key or not pairs[key]:
            raise RequestError(f"{name} {item!r} is not valid: write NAME=VALUE")
    return pairs


def _own_workload(file: str) -> str:
    """The name of the workload in --workload-file, which from here on is one of the workloads."""
    path = os.path.abspath(file)
    others = os.environ.get(workloads.VARIABLE, "")
    os.environ[workloads.VARIABLE] = os.pathsep.join(filter(None, [others, path]))
    own = workloads.in_file(path)
    if path in (refused := strategies.broken()):
        raise RequestError(refused[path])
    return own


def given(arguments: argparse.Namespace, folder: Path = Path()) -> Given | None:
    """The function of a person's own that is named in place of a workload, in a file of ``folder``; None where a
    workload is."""
    further = (("--elems", arguments.elems), ("--batched", arguments.batched), ("--reference", arguments.reference))
    path, colon, function = (arguments.workload or "").rpartition(":")
    if not colon:
        for flag, value in further:
            if value is not None:
                raise RequestError(f"{flag} goes with a function of your own: name it as FILE.py:FUNCTION")
        return None
    if not path.endswith(".py") or not function.isidentifier():
        raise RequestError(f"{arguments.workload!r} is not valid: write FILE.py:FUNCTION")
    if arguments.elems is None:
        raise RequestError(f"what {function} is mapped over is missing: name it by --elems")
    try:
        code = (folder / path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    names = {flag.strip("-"): value or "" for flag, value in further}
    if names["elems"].endswith((".npy", ".npz")):
        loaded = elems_file.store(str(folder / names["elems"]))
        names["elems"], code = elems_file.NAME, f"{code.rstrip()}\n\n\n{loaded}\n"
    named = Given(code=code, function=function, **names)
    deriving.check(named)
    return named


def _request(arguments: argparse.Namespace, size: dict[str, str]) -> dict[str, Any]:
    file = getattr(arguments, "workload_file", None)  # which a gate does not take
    own = _own_workload(file) if file else None
    machine = getattr(arguments, "machine", None)
    machine = ALL_MACHINES if machine == "all" else machine
    return {
        "workload": arguments.workload or own,
        "workload_options": _pairs("--workload-option", arguments.workload_option),
        "size": size,
        "dtype": arguments.dtype,
        "device": arguments.device if machine is None else f"{machine} / {arguments.device or 'CPU:0'}",
        "strategies": arguments.strategies,
        "budget_s": arguments.budget,
        "memory_limit_mib": arguments.memory_limit,
        "threads": arguments.threads,
        "seed": arguments.seed,
        "allocator": arguments.allocator,
    }
