"""The arguments of the command line: what can be written, and the request that is meant by it."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

import strategies
import workloads
from measure.engine import deriving
from measure.making import to_continue
from measure.output import export_command
from measure.run.request import ALLOCATORS, DEFAULT_BUDGET_S, Request, RequestError, parse, parse_budget
from measure.run.run import Run
from measure.run.sweep_request import DEFAULT_BUDGET_S as SWEEP_BUDGET_S
from measure.run.sweep_request import SweepRequest, parse_sweep
from measure.store.store import Store
from workloads import elems_file
from workloads.functions import Given


def parser() -> argparse.ArgumentParser:
    name = "mapbench" if Path(sys.argv[0]).stem == "mapbench" else "python -m measure"
    whole = argparse.ArgumentParser(prog=name, description="The same measurements as on the pages, without a browser.")
    commands = whole.add_subparsers(dest="command", required=True)

    compare = commands.add_parser("compare", help="compare strategies for one workload at one size")
    compare.add_argument("--size", action="append", default=[], metavar="NAME=N", help="repeatable")
    _add_case(compare)
    compare.add_argument(
        "--budget", metavar="SECONDS", help=f"time until the verdict ({DEFAULT_BUDGET_S:.0f}, or what is needed)"
    )
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
    sweep.add_argument(
        "--pair", nargs=2, default=(), metavar="STRATEGY", help="say where the first of two overtakes the second"
    )
    _add_output(sweep)

    claims = commands.add_parser("claims", help="try what is said about mapping, and say what is true here")
    claims.add_argument("claim", nargs="*", help="ids of claims; none lists them")
    claims.add_argument("--list", action="store_true", help="list them, as without a name")
    claims.add_argument("--all", action="store_true", help="try all of them")
    claims.add_argument("--markdown", action="store_true", help="print verdicts as Markdown")
    _add_output(claims)

    listing = commands.add_parser("list", help="workloads, their sizes and defaults, strategies, devices")
    listing.add_argument("--json", action="store_true")

    commands.add_parser("worker", help="measure what waits in the store, apart from the server of the pages")
    export_command.add_to(commands.add_parser("export", help="write a run, its charts or its explanations as files"))
    _add_orders(commands.add_parser("admin", help="an operator's: list, end, pin and delete runs, drain"))
    return whole


def _add_orders(parser: argparse.ArgumentParser) -> None:
    """An operator's commands, which `measure.admin` follows."""
    commands = parser.add_subparsers(dest="order", required=True)
    commands.add_parser("list", help="all runs, the newest first").add_argument("--json", action="store_true")
    commands.add_parser("cancel", help="end a run, with what was measured").add_argument("id")
    for name, what in (("delete", "delete runs"), ("pin", "keep runs when room is made"), ("unpin", "no longer")):
        commands.add_parser(name, help=what).add_argument("id", nargs="+")
    prune = commands.add_parser("prune", help="delete all runs that match, but pinned ones and those that go on")
    prune.add_argument("--older-than", metavar="AGE", help="asked for longer ago: 30d, 12h, 2w")
    prune.add_argument("--origin", metavar="HASH", help="of one visitor, as the list names it")
    prune.add_argument("--larger-than", metavar="SIZE", help="10MiB")
    prune.add_argument("--keep-bytes", metavar="SIZE", help="the oldest, until all runs take no more")
    prune.add_argument("--dry-run", action="store_true", help="only say which")
    drain = commands.add_parser("drain", help="have the server take no new runs, as before a deployment")
    drain.add_argument("--wait", action="store_true", help="until nothing is measured any more")
    commands.add_parser("resume", help="have it take new runs again")


def _add_case(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "workload",
        nargs="?",
        help="a workload's name, see 'list', or a function of your own as FILE.py:FUNCTION; "
        "not needed with --workload-file",
    )
    command.add_argument("--elems", metavar="NAME", help="what your function is mapped over: a name in its file, "
                         "an array or a function that makes one, or a file .npy or .npz")  # fmt: skip
    command.add_argument("--batched", metavar="NAME", help="your rewrite for the whole batch, in the same file")
    command.add_argument("--reference", metavar="NAME", help="your reference in NumPy, for the whole batch")
    command.add_argument("--workload-file", metavar="FILE", help="a workload of your own, in one Python file")
    command.add_argument("--strategies", default="default", help="all, default, or a list of slugs, mappers and modes")
    command.add_argument("--workload-option", action="append", default=[], metavar="NAME=VALUE")
    command.add_argument("--dtype")
    command.add_argument("--device", default="CPU:0")
    command.add_argument("--memory-limit", metavar="MIB", help="tensors beyond this fail as out of memory")
    command.add_argument("--threads", metavar="N", help="TensorFlow's threads, within and between ops")
    command.add_argument("--allocator", metavar="|".join(ALLOCATORS), default="pool", help="pool: freed "
                         "memory stays in the process; default: as TensorFlow and the C library do it")  # fmt: skip
    command.add_argument("--seed", default=0, help="seed of the inputs")


def _add_output(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", metavar="FILE", help="write the run here ('-' for stdout, in place of the table)")
    command.add_argument("--quiet", action="store_true", help="no progress on stderr")


def compare_request(arguments: argparse.Namespace) -> Request:
    """The comparison that is asked for. Raises `RequestError`, as the others here do."""
    return parse(_request(arguments, _pairs("--size", arguments.size)))


def sweep_request(arguments: argparse.Namespace) -> SweepRequest:
    """The sweep that is asked for. A size with several values is an axis, and so is an option; others are fixed."""
    sizes, axes = {}, []
    for name, value in _pairs("--size", arguments.size).items():
        if ":" in value or "," in value:
            axes.append({"kind": "size", "name": name, "range": value})
        else:
            sizes[name] = value
    for name, value in _pairs("--option", arguments.option).items():
        axes.append({"kind": "option", "name": name, "range": value})
    more = {"scale": arguments.scale, "points": arguments.points}
    return parse_sweep({**_request(arguments, sizes), "axes": [{**axis, **more} for axis in axes]})


def pair_to_ask(arguments: argparse.Namespace, request: SweepRequest) -> tuple[str, ...]:
    """The two strategies of --pair; none where it is not given."""
    if arguments.pair and len(request.axes) > 1:
        raise RequestError("--pair asks about lines that cross: sweep one size or option, not two")
    for slug in arguments.pair:
        if slug not in request.base.strategies:
            raise RequestError(f"--pair names {slug!r}, which is not swept: {', '.join(request.base.strategies)} are")
    return tuple(arguments.pair)


def sweep_to_continue(arguments: argparse.Namespace) -> Run:
    """The kept sweep that is to be continued, with the budget that is given."""
    if arguments.workload or arguments.size or arguments.option:
        raise RequestError("--continue takes workload, sizes and options from the sweep: leave them out")
    run = to_continue(Store(), arguments.continue_from)
    if arguments.workload_file:
        _own_workload(arguments)
    if run.request.workload not in workloads.names():
        raise RequestError(
            f"run {run.id} is of the workload {run.request.workload!r}, which is not here: "
            "where it is in a file of your own, name that by --workload-file"
        )
    if arguments.budget is not None:
        run = replace(run, request=replace(run.request, budget_s=parse_budget(arguments.budget)))
    return run


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
    if path in (refused := strategies.broken()):
        raise RequestError(refused[path])
    return own


def given(arguments: argparse.Namespace) -> Given | None:
    """The function of a person's own that is named in place of a workload, or that the sweep which is to be continued
    has mapped; None where a workload is."""
    if arguments.command == "sweep" and arguments.continue_from and not arguments.workload:
        own = to_continue(Store(), arguments.continue_from).request.own
        return None if own is UNSET else own.given
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
        code = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    names = {}
    for flag, value in further:
        file, colon, name = (value or "").rpartition(":")
        if colon and os.path.abspath(file) != os.path.abspath(path):
            raise RequestError(f"{flag} {value} is in another file than {function}: give both in one")
        names[flag] = name
    if names["--elems"].endswith((".npy", ".npz")):
        names["--elems"], code = elems_file.NAME, f"{code.rstrip()}\n\n\n{elems_file.store(names['--elems'])}\n"
    named = Given(
        code=code,
        function=function,
        elems=names["--elems"],
        batched=names["--batched"],
        reference=names["--reference"],
    )
    deriving.check(named)
    return named


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
        "allocator": arguments.allocator,
    }
