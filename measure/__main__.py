"""The command line: the same measurements without a browser (`python -m measure`; installed, `mapbench` too)."""

if __name__ == "__main__":  # before the rest is loaded, which takes a moment
    from measure import expect_interrupts

    expect_interrupts()

import argparse
import contextlib
import errno
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

import workloads
from measure import INTERRUPTED, admin, agent, gate_command, hosting, local, worker
from measure.arguments import check_file, compare_request, given, parsed, sweep_request, write_file
from measure.claims import table as table_of_claims
from measure.claims.tries import chosen
from measure.client import Client
from measure.engine import sweep
from measure.judge import pair, reasons, warnings
from measure.judge.findings import findings
from measure.local import Following, HostFailed, Local, say
from measure.making import FAULT as FAULT_OF_OURS
from measure.making import Asked
from measure.output import decide_command, export, export_command, pair_table, sweep_table, table
from measure.run import listing, text
from measure.run.encoding import encode
from measure.run.place import StoreError
from measure.run.request import SEEDS, RequestError, check_machine, whole
from measure.run.run import Run
from workloads.discovery import DiscoveryError

MEASURED, FAULT, INVALID = 0, 1, 2
# Between two looks at a run that another machine measures.
_LOOK_S = 0.5


def _measure(arguments: argparse.Namespace) -> int:
    """Measure what is asked for, and write the outcome."""
    if arguments.json is not None and arguments.json != "-":
        check_file("json", arguments.json)
    if getattr(arguments, "machine", None) is not None:
        return _measure_there(arguments)
    follower = Following(quiet=arguments.quiet)
    with Local(f"a command line, {arguments.command}", follower.say) as here:
        asked = _asked(arguments, here, follower)
        why, continue_from = getattr(arguments, "why", False), getattr(arguments, "continue_from", None)
        run, problem = here.measure(asked, follower.look, why=why, continue_from=continue_from)
        return _written(arguments, run, problem)


def _measure_there(arguments: argparse.Namespace) -> int:
    """Have other machines measure what is asked for, and write the outcome of each."""
    asker, follower = Client(), Following(quiet=arguments.quiet)
    if getattr(arguments, "why", False) or getattr(arguments, "continue_from", None):
        raise RequestError("--why and --continue are for what is measured here: leave them out, or --machine")
    if arguments.json and arguments.machine == "all":
        raise RequestError("--json takes one run: name one machine")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if function := given(arguments):
        arguments.workload = asker.give(
            function, seed=whole("seed", arguments.seed or 0, *SEEDS), waiting=lambda _: None
        )
    ids = asker.submit_to_all((compare_request if arguments.command == "compare" else sweep_request)(arguments))
    runs = list[Run]()
    try:
        for run_id in ids:
            while (snapshot := asker.snapshot(run_id)) is not None and snapshot.state != "finished":
                if snapshot.message:
                    follower.say(f"{snapshot.run.request.machine or 'here'}: {snapshot.message}")
                time.sleep(_LOOK_S)
            if snapshot is not None:
                runs.append(snapshot.run)
    except KeyboardInterrupt:
        for run_id in ids:
            asker.cancel(run_id)
        say(f"cancelled: {text.listed(ids)}")
        return INTERRUPTED
    statuses = []
    for run in runs:
        if len(runs) > 1:
            print(f"\nOn {run.request.machine or 'this machine'}:\n")
        statuses.append(_written(arguments, run, ""))
    for other in runs[1:] if arguments.command == "compare" else ():
        with contextlib.suppress(ValueError):  # they cannot be compared, as where all has failed
            print(f"\n{pair_table.render(pair.of(runs[0], other))}")
    return max(statuses, default=FAULT)


def _written(arguments: argparse.Namespace, run: Run, problem: str) -> int:
    """Write a run that has ended; the exit status. ``problem``: why it is not kept."""
    file = arguments.json
    is_file = file is not None and file != "-"
    shown = run
    if problem:
        shown = replace(run, warnings=[*run.warnings, warnings.warning("not_saved", reason=problem)])
    status = INTERRUPTED if run.status in ("cancelled", "interrupted") else MEASURED
    status = FAULT if run.stop_reason.startswith(FAULT_OF_OURS) else status
    if is_file:
        try:
            write_file("json", file, encode(run))
        except RequestError as error:
            say(f"error: {error}" + ("" if problem else f"; the run is kept as {run.id}"))
            status = FAULT
    if run.kind == "sweep" or file == "-":  # what is printed of a comparison holds them
        for line in local.warnings(shown):
            say(f"warning: {line}")
    if run.kind == "sweep" and sweep.is_open(run) and not problem:
        say(f"it can be continued: python -m measure sweep --continue {run.id}")
    # Last, since whoever reads this may be gone.
    if file == "-":
        write_file("json", file, encode(run))
    else:
        print(_rendered(arguments, shown))
    return status


def _asked(arguments: argparse.Namespace, here: Local, follower: Following) -> Asked:
    """The request. A function of a person's own is looked at before that, and is a workload from then on."""
    if arguments.command == "claims":
        return chosen(arguments.claim)
    if function := given(arguments):
        arguments.workload = here.give(function, whole("seed", arguments.seed or 0, *SEEDS))
        follower.say(workloads.get(arguments.workload).summary)
    return (compare_request if arguments.command == "compare" else sweep_request)(arguments)


def _rendered(arguments: argparse.Namespace, run: Run) -> str:
    """What is printed of a run."""
    if run.kind == "claims":
        return export.markdown(run).rstrip("\n") if arguments.markdown else table_of_claims.render(run)
    if run.kind == "sweep":
        return sweep_table.render(run, arguments.pair)
    why = [f"`{slug}` {words}" for slug, words in reasons.predicates(findings(run)).items()]
    return "\n".join([table.render(run), *(["", "Why", *why] if arguments.why else [])])


def _claims(arguments: argparse.Namespace) -> int:
    """Try claims, or list them."""
    if arguments.all and arguments.claim:
        raise RequestError("--all tries every claim: leave out the ids, or --all")
    if (arguments.claim or arguments.all) and not arguments.list:
        return _measure(arguments)
    if arguments.markdown:
        raise RequestError("--markdown prints verdicts: name claims, or --all")
    if arguments.json:
        write_file("json", arguments.json, _indented(table_of_claims.listing()))
    else:
        print(table_of_claims.listed())
    return MEASURED


def _diff(arguments: argparse.Namespace) -> int:
    """Print what differs between two comparisons."""
    first, second = (export_command.read(name) for name in (arguments.first, arguments.second))
    try:
        print(pair_table.render(pair.of(first, second, arguments.baseline)))
    except ValueError as error:
        raise RequestError(str(error)) from None
    return MEASURED


def _list(arguments: argparse.Namespace) -> int:
    with Local("a command line, list") as here:
        devices = here.host().devices
    if arguments.json:
        write_file("json", "-", _indented(listing.grid(devices)))
    else:
        print("\n".join(listing.lines(devices)))
    for message in listing.broken().values():
        say(f"warning: {message}")
    return MEASURED


def _worker(arguments: argparse.Namespace) -> int:
    """Measure what waits, here or for a dashboard elsewhere."""
    host, python = socket.gethostname(), arguments.python
    name = arguments.name or (host if arguments.scheduler else "")
    if python is not None and not arguments.name:  # such as box-tf217, of tf217/bin/python
        name = f"{host}-{Path(python).absolute().parent.parent.name}"
    if name:
        check_machine(name)
    if arguments.scheduler:
        agent.serve(arguments.scheduler, name, python=python, own_code=arguments.own_code)
    else:
        worker.serve(name, python)
    return MEASURED


def _indented(data: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(data), indent=1)


_COMMANDS = {
    "compare": _measure, "sweep": _measure, "claims": _claims, "diff": _diff, "gate": gate_command.run, "list": _list,
    "export": export_command.run, "report": export_command.report, "decide": decide_command.run, "admin": admin.run,
    "worker": _worker,
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 measured, 2 the request is invalid, 3 interrupted, 1 a fault; of a gate also 4 and 5."""
    arguments, status = parsed(argv), MEASURED
    try:
        hosting.check()
        status = _COMMANDS[arguments.command](arguments)
        sys.stdout.flush()
        return status
    except (RequestError, StoreError, DiscoveryError, hosting.SettingError, HostFailed) as error:
        say(f"error: {error}")
        return FAULT if isinstance(error, HostFailed) else INVALID
    except KeyboardInterrupt:
        say("interrupted before anything was measured")
        return INTERRUPTED
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC):
            raise
        # Python would complain when it flushes the rest at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.EPIPE:  # whoever read the table has enough
            return status
        say(f"error: nothing more can be written: {error.strerror}")
        return FAULT


if __name__ == "__main__":
    if "worker" not in sys.argv[1:2]:  # a store that cannot be written is told once there, and not at each try
        logging.getLogger("mapbench").setLevel(logging.ERROR)
    sys.exit(main())
