"""The command line: the same measurements without a browser (`python -m measure`; installed, `mapbench` too)."""

if __name__ == "__main__":  # before the rest is loaded, which takes a moment
    from measure.installed import expect_interrupts

    expect_interrupts()

import argparse
import errno
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

import workloads
from measure import admin, admission, following, hosting, worker
from measure.arguments import compare_request, given, pair_to_ask, parser, sweep_request, sweep_to_continue
from measure.claims import table as table_of_claims
from measure.claims.tries import chosen
from measure.engine import continuing
from measure.installed import INTERRUPTED
from measure.judge import advice, reasons
from measure.judge.lines import readable
from measure.local import HostFailed, Local
from measure.making import Asked
from measure.output import export, export_command, sweep_table, table
from measure.run import listing, text
from measure.run.place import StoreError
from measure.run.request import RequestError, parse_seed
from measure.run.run import Point, Run
from measure.run.run_file import encode
from measure.run.sweep_request import of_run
from workloads.discovery import DiscoveryError

MEASURED, FAULT, INVALID = 0, 1, 2


def _compare(arguments: argparse.Namespace, own: Local | None) -> int:
    request = compare_request(arguments)
    # What is known to be wrong is said before anything is started.
    admission.check(request, (), hosting.limits())

    def render(run: Run) -> str:
        explained = ["", "Why", *reasons.sentences(run).values()] if arguments.why else []
        return "\n".join([table.render(run), *explained])

    return _measure(arguments, own, request.record().title, request, render, why=arguments.why)


def _sweep(arguments: argparse.Namespace, own: Local | None) -> int:
    earlier: list[Point] = []
    if arguments.continue_from:
        before = sweep_to_continue(arguments)
        request = of_run(before)
        earlier = continuing.taken_over(before, request, before.environment)
    else:
        request = sweep_request(arguments)
    pair = pair_to_ask(arguments, request)
    admission.check(request, (), hosting.limits())
    needs = admission.sweep_needs(request, earlier)
    if not arguments.quiet:
        following.say(f"forecast: about {text.seconds(needs.seconds)}, at most about {text.size(needs.peak_bytes)}")
        for at, reason in needs.skipped:
            following.say(f"  {readable(at)} is skipped: {reason}")
        if needs.too_long:
            following.say(f"  {needs.too_long}")
    about, before_id = request.base.record().title, arguments.continue_from
    return _measure(arguments, own, about, request, lambda run: sweep_table.render(run, pair), continue_from=before_id)


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
    claims = chosen(arguments.claim)
    admission.check(claims, (), hosting.limits())

    def render(run: Run) -> str:
        return export.markdown(run).rstrip("\n") if arguments.markdown else table_of_claims.render(run)

    return _measure(arguments, None, "", claims, render)


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


def _given(arguments: argparse.Namespace) -> Local | None:
    """The process that has looked at a function of a person's own, which is one of the workloads from here on;
    None where a workload is named."""
    if (function := given(arguments)) is None:
        return None
    own = _local(arguments, function.function)
    slug = own.give(function, seed=parse_seed(arguments.seed))
    if not arguments.quiet:
        following.say(workloads.get(slug).summary)
    if not (arguments.command == "sweep" and arguments.continue_from):  # which takes it from the sweep
        arguments.workload = slug
    return own


def _local(arguments: argparse.Namespace, about: str) -> Local:
    say = (lambda line: None) if getattr(arguments, "quiet", False) else following.Following().say
    return Local(f"a command line, {arguments.command} {about}".rstrip(), say)


def _measure(
    arguments: argparse.Namespace, own: Local | None, about: str, asked: Asked, render: Callable[[Run], str], *,
    why: bool = False, continue_from: str | None = None,
) -> int:  # fmt: skip
    """Measure what is asked for, and write the outcome."""
    if refusal := _unwritable(arguments.json):
        raise RequestError(refusal)
    follower = following.Following()
    own = own or _local(arguments, about)
    with own.interruptible():
        try:
            own.check(asked)  # a request for a device that is not here is refused before anything starts
            look = (lambda view: None) if arguments.quiet else follower.look
            measured = own.measure(asked, look, why=why, continue_from=continue_from)
        finally:
            own.close()
    run = shown = measured.run
    if measured.problem:
        warning = advice.not_kept(measured.problem, in_file=arguments.json is not None)
        shown = replace(run, warnings=[*run.warnings, warning])
    status = INTERRUPTED if run.status in ("cancelled", "interrupted") else MEASURED
    status = FAULT if measured.fault else status
    if arguments.json and arguments.json != "-":
        try:
            Path(arguments.json).write_bytes(encode(run) + b"\n")
        except OSError as error:
            where = "" if measured.problem else f"; the run is kept as {run.id}"
            following.say(f"error: --json {arguments.json} cannot be written: {error.strerror}{where}")
            status = FAULT
    if run.kind == "sweep" or arguments.json == "-":  # what is printed of a comparison holds them
        for line in following.warnings(shown):
            following.say(f"warning: {line}")
    if run.kind == "sweep" and continuing.is_open(run) and not measured.problem:
        following.say(f"it can be continued: python -m measure sweep --continue {run.id}")
    # Last, since whoever reads this may be gone.
    if arguments.json == "-":
        sys.stdout.buffer.write(encode(run) + b"\n")
    else:
        print(render(shown))
    return status


def _unwritable(file: str | None) -> str | None:
    """The sentence that says why the run cannot be written into this file, as far as can be known beforehand."""
    if file is None or file == "-":
        return None
    path = Path(file).resolve()
    reasons = {
        "it is a folder": path.is_dir(),
        "its folder does not exist": not path.parent.is_dir(),
        "permission denied": not os.access(path if path.exists() else path.parent, os.W_OK),
    }
    return next((f"--json {file} cannot be written: {reason}" for reason, is_so in reasons.items() if is_so), None)


def _list(arguments: argparse.Namespace) -> int:
    own = _local(arguments, "")
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


def _worker(arguments: argparse.Namespace) -> int:
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
            status = (_compare if arguments.command == "compare" else _sweep)(arguments, _given(arguments))
        else:
            command = {
                "list": _list, "export": export_command.run, "claims": _claims, "admin": admin.run, "worker": _worker,
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
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC):
            raise
        # Python would complain when it flushes the rest at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.EPIPE:  # whoever read the table has enough
            return MEASURED
        following.say(f"error: nothing more can be written: {error.strerror}")
        return FAULT


if __name__ == "__main__":
    if "worker" not in sys.argv[1:2]:  # a store that cannot be written is told once there, and not at each try
        logging.getLogger("mapbench").setLevel(logging.ERROR)
    sys.exit(main())
