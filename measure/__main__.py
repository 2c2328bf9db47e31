"""The command line: the same measurements without a browser (`python -m measure`; installed, `mapbench` too)."""

if __name__ == "__main__":  # before the rest is loaded, which takes a moment
    from measure import interruption

    interruption.expect()

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

import workloads
from measure import beginning, following, hosting
from measure.arguments import compare_request, given, pair_to_ask, parser, sweep_request, sweep_to_continue
from measure.claims import table as table_of_claims
from measure.claims.tries import chosen
from measure.interruption import INTERRUPTED
from measure.judge import advice, reasons
from measure.local import HostFailed, Local, Make
from measure.model import listing, text
from measure.model.place import StoreError
from measure.model.request import Request, RequestError, parse_seed
from measure.model.run import Point, Run
from measure.model.run_file import encode
from measure.output import export, export_command, sweep_table, table
from measure.store.store import Store
from measure.sweep import continuing
from measure.sweep.lines import written
from measure.sweep.request import of_run
from workloads.discovery import DiscoveryError

MEASURED, FAULT, INVALID = 0, 1, 2


def _compare(arguments: argparse.Namespace, own: Local | None) -> int:
    request = compare_request(arguments)
    # What is known to be wrong is said before anything is started.
    beginning.check(request, (), hosting.limits())

    def render(run: Run) -> str:
        explained = ["", "Why", *reasons.sentences(run).values()] if arguments.why else []
        return "\n".join([table.render(run), *explained])

    return _measure(
        arguments,
        own,
        f"compare {request.record().title}",
        lambda making, run_id, publish, keep: making.comparison(
            run_id, request, publish, keep=keep if arguments.why else None
        ),
        request,
        render,
    )


def _sweep(arguments: argparse.Namespace, own: Local | None) -> int:
    taken: list[Point] = []
    if arguments.continue_from:
        before = sweep_to_continue(arguments)
        request = of_run(before)
        taken = continuing.complete(before, request)
    else:
        request = sweep_request(arguments)
    pair = pair_to_ask(arguments, request)
    beginning.check(request, (), hosting.limits())
    needs = beginning.sweep_needs(request, taken)
    if not arguments.quiet:
        following.say(f"forecast: about {text.seconds(needs.seconds)}, at most about {text.size(needs.peak_bytes)}")
        for at, reason in needs.skipped:
            following.say(f"  {written(at)} is skipped: {reason}")
        for sentence in needs.strategies_left_out():
            following.say(f"  {sentence}")
    return _measure(
        arguments,
        own,
        f"sweep {request.base.record().title}",
        lambda making, run_id, publish, keep: making.sweep(
            run_id,
            request,
            publish,
            arguments.continue_from,
            making.taken_over(request, arguments.continue_from, Store().look),
        ),
        request.base,
        lambda run: sweep_table.render(run, pair),
    )


def _claims(arguments: argparse.Namespace) -> int:
    if arguments.all and arguments.claim:
        raise RequestError("--all tries every claim: leave out the ids, or --all")
    if arguments.list and (arguments.claim or arguments.all):
        raise RequestError("--list names all claims: leave out the ids and --all")
    if not arguments.claim and not arguments.all:
        if arguments.markdown:
            raise RequestError("--markdown prints verdicts: name claims, or --all")
        return _list_claims(arguments.json)
    # What is not known, or takes too long, is said before anything is started.
    beginning.check(chosen(arguments.claim), (), hosting.limits())

    def render(run: Run) -> str:
        return export.markdown(run).rstrip("\n") if arguments.markdown else table_of_claims.render(run)

    return _measure(
        arguments,
        None,
        "claims",
        lambda making, run_id, publish, keep: making.claims(run_id, arguments.claim, publish),
        None,
        render,
    )


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
def _with_function(arguments: argparse.Namespace) -> Iterator[Local | None]:
    """Have a function of a person's own, if one is named, looked at: from here on it is one of the workloads. The
    process that did so; None where a workload is named."""
    function = given(arguments)
    if function is None:
        yield None
        return
    own = Local(f"a command line, {arguments.command} {function.function}", _say(arguments))
    try:
        slug = own.give(function, seed=parse_seed(arguments.seed))
        if not arguments.quiet:
            following.say(workloads.get(slug).summary)
        if not (arguments.command == "sweep" and arguments.continue_from):  # which takes it from the sweep
            arguments.workload = slug
        yield own
    finally:
        own.close()


def _say(arguments: argparse.Namespace) -> Callable[[str], None]:
    """A function that takes lines on the progress: each is printed once, and none with --quiet."""
    return (lambda line: None) if arguments.quiet else following.Following().say


def _measure(
    arguments: argparse.Namespace,
    own: Local | None,
    name: str,
    make: Make,
    request: Request | None,
    render: Callable[[Run], str],
) -> int:
    """Measure what is made, and write the outcome. ``request``: names the device that is needed."""
    if refusal := _unwritable(arguments.json):
        raise RequestError(refusal)
    follower = following.Following()
    own = own or Local(f"a command line, {name}", _say(arguments))
    with following.warnings_unlogged(), own.interruptible():
        try:
            devices = own.host().devices  # a request for another is refused before anything starts
            if request is not None and (lacking := beginning.missing(request, devices)):
                raise RequestError(lacking)
            measured = own.measure(make, (lambda view: None) if arguments.quiet else follower.look)
        finally:
            own.close()
    run = told = measured.run
    if measured.problem:
        warning = advice.not_kept(measured.problem, in_file=arguments.json is not None)
        told = replace(run, warnings=[*run.warnings, warning])
    status = INTERRUPTED if run.status in ("cancelled", "interrupted") else MEASURED
    status = FAULT if measured.fault else status
    if arguments.json and arguments.json != "-":
        try:
            Path(arguments.json).write_bytes(encode(run) + b"\n")
        except OSError as error:
            kept = "" if measured.problem else f"; the run is kept as {run.id}"
            following.say(f"error: --json {arguments.json} cannot be written: {error.strerror}{kept}")
            status = FAULT
    if run.kind == "sweep" or arguments.json == "-":  # what is printed of a comparison holds them
        for line in following.warnings(told):
            following.say(f"warning: {line}")
    if run.kind == "sweep" and continuing.is_open(run) and not measured.problem:
        following.say(f"it can be continued: python -m measure sweep --continue {run.id}")
    # Last, since whoever reads this may be gone.
    if arguments.json == "-":
        sys.stdout.buffer.write(encode(run) + b"\n")
    else:
        print(render(told))
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


def _list(arguments: argparse.Namespace) -> int:
    own = Local("a command line, list", following.say)
    try:
        devices = own.host().devices
    finally:
        own.close()
    if arguments.json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(listing.grid(devices)), indent=1) + b"\n")
    else:
        print("\n".join(listing.lines(devices)))
    for message in listing.broken().values():
        following.say(f"warning: {message}")
    return MEASURED


def _admin(arguments: argparse.Namespace) -> int:
    from measure import admin  # which needs the store, and no other command at once

    return admin.run(arguments)


def _worker(arguments: argparse.Namespace) -> int:
    from measure import worker  # which needs the store, and no other command at once

    worker.serve()
    return MEASURED


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 measured, 2 the request is invalid, 3 interrupted, 1 a fault."""
    whole = parser()
    arguments = whole.parse_args(argv)
    continued = arguments.command == "sweep" and arguments.continue_from
    if arguments.command in ("compare", "sweep") and not (arguments.workload or arguments.workload_file or continued):
        whole.error("a workload is needed: its name, or --workload-file")
    try:
        hosting.check()
        if arguments.command in ("compare", "sweep"):
            with _with_function(arguments) as own:
                status = (_compare if arguments.command == "compare" else _sweep)(arguments, own)
        else:
            command = {
                "list": _list, "export": export_command.run, "claims": _claims, "admin": _admin, "worker": _worker,
            }[arguments.command]  # fmt: skip
            status = command(arguments)
        sys.stdout.flush()
        return status
    except (RequestError, StoreError, DiscoveryError, hosting.SettingError) as error:
        following.say(f"error: {error}")
        return INVALID
    except HostFailed as error:
        following.say(f"error: {error}")
        return FAULT
    except KeyboardInterrupt:
        following.say("interrupted before anything was measured")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the table has enough. Python would complain when it flushes the rest at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return MEASURED


if __name__ == "__main__":
    sys.exit(main())
