"""`python -m measure gate`: whether HEAD is shown to be worse than BASE by more than is allowed."""

import argparse
import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from measure import INTERRUPTED, making
from measure.admission import check
from measure.arguments import check_file, compare_request, given, write_file
from measure.checkouts import Side, opened
from measure.engine import deriving
from measure.engine.bench import Keep
from measure.engine.gate import BUDGET_S, Gate
from measure.hosting import limits
from measure.judge.gate import ALARMS, Allowed, Result, of_run, of_runs
from measure.local import Following, Local, say
from measure.output import export_command
from measure.output import gate as output
from measure.pool.clock import Clock
from measure.run.request import AUTO, SEEDS, RequestError, again, whole
from measure.run.run import Run
from workloads.functions import Given

FINE, FAULT, WORSE, CANNOT_TELL = 0, 1, 4, 5
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")


def run(arguments: argparse.Namespace) -> int:
    """Judge, and write the result. Exit status: 0 within, 4 worse, 5 cannot tell, 3 interrupted, 1 a fault."""
    files = {name: getattr(arguments, name) for name in ("json", "markdown", "junit") if getattr(arguments, name)}
    if [*files.values()].count("-") > 1:
        raise RequestError("'-' is stdout, for one of --json, --markdown and --junit")
    for name, file in files.items():
        check_file(name, file)
    slower = _share("--max-regression", arguments.max_regression)
    allowed = Allowed(slower, _share("--max-memory", arguments.max_memory or arguments.max_regression))
    measured = None
    if arguments.workload:
        measured, result = _measured(arguments, allowed)
        if measured.status in ("cancelled", "interrupted"):
            return FAULT if measured.stop_reason.startswith(making.FAULT) else INTERRUPTED
    else:
        result = _of_runs(arguments, allowed)
    unsure = FINE if arguments.lenient else CANNOT_TELL
    status = WORSE if result.word in ALARMS else FINE if result.word == "within" else unsure
    texts = {
        "json": output.as_json(result, status, measured.id if measured else None),
        "markdown": output.as_markdown(result).encode(),
        "junit": output.as_junit(result).encode(),
    }
    for name, file in files.items():
        write_file(name, file, texts[name])
    if "-" not in files.values():
        print(output.render(result))
    return status


def _share(name: str, words: str) -> float:
    if (match := _SHARE.fullmatch(words.strip())) is None:
        raise RequestError(f"{name} {words!r} is not valid: write a percentage, as 5%")
    return float(match[1]) / 100


def _of_runs(arguments: argparse.Namespace, allowed: Allowed) -> Result:
    if arguments.head is None:
        raise RequestError("a second run is needed, or --function, which is measured in BASE and in HEAD")
    first, second = (export_command.read(name) for name in (arguments.base, arguments.head))
    try:
        return of_runs(first, second, allowed, baseline=arguments.baseline, leader=arguments.leader)
    except ValueError as error:
        raise RequestError(str(error)) from None


def _measured(arguments: argparse.Namespace, allowed: Allowed) -> tuple[Run, Result]:
    """Measure both sides in one run."""
    file, colon, _ = arguments.workload.rpartition(":")
    if not colon or Path(file).is_absolute():  # which would be one file for both
        raise RequestError(
            f"--function {arguments.workload!r} is not valid: write FILE.py:FUNCTION, as it is found from either folder"
        )
    follower, seed = Following(quiet=arguments.quiet), whole("seed", arguments.seed or 0, *SEEDS)
    arguments.budget = BUDGET_S if arguments.budget in (None, AUTO) else arguments.budget
    with contextlib.ExitStack() as stack:
        head_name = "." if arguments.head is None else arguments.head
        base, head = (stack.enter_context(opened(name)) for name in (arguments.base, head_name))
        codes = [_given(arguments, side) for side in (base, head)]
        here = stack.enter_context(Local("a command line, gate", follower.say, interpreter=head.interpreter(file)))
        beside = here.beside(base.interpreter(file))
        # BASE's last: where the text is the same, what was derived of it counts for both.
        with _of(head):
            arguments.workload = here.give(codes[1], seed)
        with _of(base):
            slug = here.give(codes[0], seed, beside)
        request = compare_request(arguments)
        of_base = again(request, workload=slug)
        check(request, (), limits())
        if lacking := making.missing(request, here.host().devices):
            raise RequestError(lacking)
        settings = replace(making.settings_of(making.bound_s(request)), probes=False, process_peaks=False)

        def make(run_id: str, publish: making.Publish, keep: Keep) -> Gate:
            for launcher, asked in ((beside, of_base), (here.launcher, request)):
                deriving.look(launcher, asked, Clock())
            return Gate(
                run_id, request.record(), here.launcher, publish, base=(base.name, of_base.record(), beside),
                name=head.name, allowed=allowed, leader=arguments.leader, settings=settings,
            )  # fmt: skip

        measured, problem = here.record(make, follower.look)
    say(f"warning: the run could not be kept: {problem}" if problem else f"the run is kept as {measured.id}")
    return measured, of_run(measured, allowed, (base.name, head.name), leader=arguments.leader)


def _given(arguments: argparse.Namespace, side: Side) -> Given:
    with _of(side):
        function = given(arguments, side.folder)
    assert function is not None, "it is named"
    return function


@contextlib.contextmanager
def _of(side: Side) -> Iterator[None]:
    """A request that is refused is so of this side."""
    try:
        yield
    except RequestError as error:
        raise RequestError(f"{side.name}: {error}") from None
