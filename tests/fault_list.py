"""The list of faults: how a subject, the host, the store or a person misbehaves, at each stage and moment of a run, and
what has to become of it. The subjects are played (`tests.played`), so that a case takes a second.
"""

import contextlib
import itertools
import json
import random
import resource
import signal
import socket
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from measure.engine import host_launcher, stages
from measure.engine.bench import Bench
from measure.engine.host_launcher import HostLauncher
from measure.model.run import Run
from measure.runner import Runner
from measure.store.store import Store
from measure.sweep.request import parse_sweep
from tests.engine import DEADLINE_S, descendants, eventually, left_behind, running, small_request
from tests.played import LATENCIES_S, VARIABLE, VICTIM, Fault

SEED = 20
# A step of a subject that plays takes milliseconds.
TIMEOUT_S = 3.0
# A run of any case ends within this, on a machine that does other things too.
_ENDS_S = 120.0
_LOCKED_S = 1.0
_BUDGET_S = 5.0
_MOST_SAID = 600  # of a run that is not as it has to be
_CLAIM, _CLAIMED = "gradients_of_examples_faster", "vectorized_map.graph"
_TWIN = f"{VICTIM}#twin"

MOMENTS = ("begin", "middle", "end")
# Stage → the role and the message that it is, and whose it is.
STAGES = {
    "reference": ("reference", "saved", "", ""),
    "correctness": ("memory", "checked", VICTIM, ""),
    "memory": ("memory", "memory", VICTIM, ""),
    "first call": ("timing", "first_call", VICTIM, ""),
    "sampling": ("timing", "sampled", VICTIM, ""),
    "twin": ("timing", "sampled", _TWIN, ""),
    "limit": ("probes", "rates", "", ""),
    "process peak": ("process_peak", "process_peak", VICTIM, ""),
    "explanation": ("why", "why", VICTIM, ""),
    "sweep point": ("memory", "memory", VICTIM, "batch=8"),
    "claims": ("memory", "memory", _CLAIMED, ""),
}
# What a subject does → the outcome of its strategy.
OF_SUBJECTS = {
    "raises": "failed",
    "exits": "failed",
    "aborts": "failed",
    "is killed": "failed",
    "writes into the channel": "failed",
    "floods the channel": "failed",
    "runs out of memory": "out_of_memory",
    "hangs": "timeout",
    "stops itself": "timeout",
    "prints without end": "timeout",
    "leaves processes": "ok",
}
_SPEAKS = ("raises", "runs out of memory", "writes into the channel")
OF_HOSTS = ("the host is killed", "the host is stopped")
OF_STORES = ("the store is locked", "the store is full", "the run is deleted from the store", "the store is deleted")
OF_PEOPLE = ("cancel", "stop", "delete")


@dataclass(frozen=True)
class Case:
    kind: str
    stage: str
    moment: str

    def __str__(self) -> str:
        return f"{self.kind}, {self.stage}, {self.moment}"


def cases() -> list[Case]:
    """All of them, in an order that is the same every time."""
    kinds = (*OF_SUBJECTS, *OF_HOSTS, *OF_STORES, *OF_PEOPLE)
    found = [Case(*each) for each in itertools.product(kinds, STAGES, MOMENTS)]
    random.Random(SEED).shuffle(found)
    return found


def some(found: Sequence[Case], count: int) -> list[Case]:
    """So many cases, in which every kind and every stage is at least once where ``count`` allows it."""
    chosen: list[Case] = []
    seen: set[str] = set()
    for case in found:
        if not {case.kind, case.stage} <= seen:
            chosen.append(case)
            seen |= {case.kind, case.stage}
    rest = [case for case in found if case not in chosen]
    return (chosen + rest)[:count]


class Wrong(AssertionError):
    """A case that did not end as it has to."""


def check(is_so: object, what: object) -> None:
    if not is_so:
        raise Wrong(str(what)[:_MOST_SAID])


# --- one case --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def stand(folder: Path) -> Iterator["Stand"]:
    """The place where cases are tried, with hosts that play."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(folder / "fault.json"))
        patch.setenv("MAPBENCH_LOCK", str(folder / "lock"))
        # Nobody is run once more in a fresh interpreter, and nobody is waited for who uses the processors.
        patch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
        patch.setattr(stages, "LOAD_WINDOW_S", 0.0)
        patch.setattr(stages, "_REFERENCE_S", TIMEOUT_S, raising=False)
        spec_of = Bench.spec

        def spec(self: Bench, role: str, slug: str, **more: object) -> object:
            return spec_of(self, role, slug, **({"artifacts": slug} if role == "timing" else {}), **more)

        patch.setattr(Bench, "spec", spec)
        command = host_launcher.command
        patch.setattr(host_launcher, "command", lambda module: command("tests.played"))
        own = Stand(folder)
        try:
            yield own
        finally:
            own.close()


class Stand:
    """One host that plays, for one case after the other; who has harmed it gets the next one another."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()
        self._launcher: HostLauncher | None = None

    def close(self) -> None:
        if self._launcher is not None:
            self._launcher.close()
            self._launcher = None

    def try_case(self, case: Case) -> None:
        """Raises `Wrong` where it does not end as it has to."""
        folder = self._folder / str(next(self._numbers))
        folder.mkdir()
        launcher = self._launcher = self._launcher or HostLauncher(self._folder / "host.log")
        check(launcher.wait_ready(DEADLINE_S, lambda: False), launcher.state())
        kept = Store(folder)
        with running(launcher, folder, kept, timeout_floor_s=TIMEOUT_S, probes=True, process_peaks_s=20.0) as own:
            run = self._measured(case, own, folder)
            check(run is not None or case.stage == "claims" or case.kind in OF_STORES, "the run is gone")
            if run is not None:
                judge(case, run)
            check(not own.queue(), "the queue is not empty")
            if case.kind not in OF_SUBJECTS:
                _measure_next(own, goes=2 if case.kind in OF_HOSTS else 1)
        if case.kind in OF_HOSTS:
            self.close()
            return
        # A process that hangs after its last word lives until its run's end.
        host = launcher.pid
        check(host is not None, "the host has ended")
        eventually(lambda: not descendants(host), "no subject is left")
        eventually(lambda: not left_behind(folder / "left"), "no process is left that a subject had made")

    def _measured(self, case: Case, own: Runner, folder: Path) -> Run | None:
        """The run in which it happens, at its end."""
        role, event, name, text = STAGES[case.stage]
        path = self._folder / "fault.json"
        with somebody(case, own, folder) as one:
            path.write_text(json.dumps(asdict(Fault(case.kind, case.moment, role, event, str(folder), name, text))))
            one.run_id = submit(own, case)
            try:
                if not own.wait(one.run_id, _ENDS_S):
                    raise Wrong(f"no end within {_ENDS_S:.0f} s: {own.snapshot(one.run_id)}"[:_MOST_SAID])
            finally:
                path.unlink()
        snapshot = own.snapshot(one.run_id)
        check((folder / "happened").exists(), f"it did not happen: {snapshot}")
        return snapshot and snapshot.run


def _measure_next(own: Runner, goes: int) -> None:
    """Whatever has happened, who comes next is measured; or the one after, where a host that was stopped at the end of
    its run is noticed by the next."""
    for go in range(goes):
        run_id = own.submit(small_request(*LATENCIES_S))
        check(own.wait(run_id, _ENDS_S), "the next run does not end")
        snapshot = own.snapshot(run_id)
        if go == goes - 1 or (snapshot and snapshot.run.status == "complete"):
            check(snapshot and snapshot.run.status == "complete", f"the next run: {snapshot}")
            return


def submit(own: Runner, case: Case) -> str:
    if case.stage == "claims":
        return own.submit_claims([_CLAIM])
    if case.stage == "sweep point":
        axes = [{"name": "batch", "values": [4, 8, 16]}]
        size = {"features": 8}
        raw = {"workload": "per_example_gradients", "size": size, "strategies": list(LATENCIES_S), "axes": axes}
        return own.submit_sweep(parse_sweep(raw | {"budget_s": 6 * _BUDGET_S}))
    return own.submit(small_request(*LATENCIES_S, budget_s=_BUDGET_S), why=case.stage == "explanation")


@contextlib.contextmanager
def somebody(case: Case, own: Runner, folder: Path) -> Iterator[SimpleNamespace]:
    """Who does what a subject cannot do, when one asks for it."""
    one = SimpleNamespace(run_id="")
    with socket.socket(socket.AF_UNIX) as asked:
        asked.bind(str(folder / "now"))
        asked.listen(4)

        def answer() -> None:
            with contextlib.suppress(OSError), contextlib.ExitStack() as held:
                while True:
                    asking, _ = asked.accept()
                    with asking:
                        eventually(lambda: one.run_id, "the run has a name")
                        _act(case, own, folder, one.run_id, held)
                        with contextlib.suppress(OSError):
                            asking.send(b".")

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield one
        finally:
            asked.shutdown(socket.SHUT_RDWR)
            thread.join()


def _act(case: Case, own: Runner, folder: Path, run_id: str, held: contextlib.ExitStack) -> None:
    file = folder / "runs.db"
    match case.kind:
        case "the host is killed" | "the host is stopped":
            sign = signal.SIGKILL if case.kind.endswith("killed") else signal.SIGSTOP
            host = own._launcher.pid
            assert host is not None
            psutil.Process(host).send_signal(sign)
        case "the store is locked":
            locked = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
            locked.execute("BEGIN EXCLUSIVE")
            timer = threading.Timer(_LOCKED_S, locked.close)
            timer.start()
            held.callback(timer.join)
        case "the store is full":
            # Whoever writes beyond so many bytes of any file is told that it is too large; Python ignores the signal.
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, limits[1]))
            held.callback(resource.setrlimit, resource.RLIMIT_FSIZE, limits)
        case "the run is deleted from the store":
            with contextlib.closing(sqlite3.connect(file)) as connection, connection:
                for table, column in (("parts", "run"), ("runs", "id")):
                    connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (run_id,))
        case "the store is deleted":
            for path in folder.glob("runs.db*"):
                path.unlink()
        case "cancel":
            own.cancel(run_id)
        case "stop":
            own.stop(run_id)
        case "delete":
            own.delete([run_id])


# --- what has to become of it ----------------------------------------------------------------------------------------


def judge(case: Case, run: Run) -> None:
    """Raises `Wrong` where the run is not what the case has to end with."""
    check(run.finished is not None and run.stop_reason, f"it is not closed: {run.status}")
    if case.kind in OF_SUBJECTS:
        check(run.status == "complete", f"{run.status}: {run.stop_reason}")
        _of_subject(case, run)
    elif case.kind in OF_HOSTS:
        check(run.status in ("interrupted", "complete"), f"{run.status}: {run.stop_reason}")
    elif case.kind == "cancel":
        # Who is cancelled when all is measured but the reasons has all the rest.
        check(run.status in ("cancelled", "complete" if case.stage == "explanation" else ""), run.status)
    elif case.kind == "stop":
        check(run.status in ("complete", "budget"), f"{run.status}: {run.stop_reason}")
    else:
        check(run.status == "complete", f"{run.status}: {run.stop_reason}")
    if case.kind not in OF_SUBJECTS:
        found = {item.outcome for item in [*run.measurements, *(m for p in run.points for m in p.measurements)]}
        check(found <= {"ok", "cancelled", "not_run"}, f"somebody innocent is blamed: {found}")
    if case.kind in (*OF_STORES, "delete") and run.kind == "compare":
        check({item.outcome for item in run.measurements} == {"ok"} and run.verdict, "something measured is lost")


def _of_subject(case: Case, run: Run) -> None:
    outcome = expected(case)
    if case.kind == "writes into the channel" and case.moment == "end":
        return  # what it had said before may or may not have been read by then
    measurements = run.measurements
    if case.stage == "sweep point":
        (point,) = [point for point in run.points if point.at["batch"] == 8]
        measurements = point.measurements
        others = [item for other in run.points if other is not point for item in other.measurements]
        if outcome in ("out_of_memory", "timeout"):  # and is not tried where more is needed
            others = [item for item in others if item.strategy != VICTIM or item.outcome != "not_run"]
        found = {item.outcome for item in others}
        check(found == {"ok"}, f"a fault has spread to other points: {found}")
    if case.stage == "claims":
        (evidence,) = run.evidence or []
        check(evidence.run is not None, f"no evidence: {evidence}")
        measurements = evidence.run.measurements
    victim = _CLAIMED if case.stage == "claims" else VICTIM
    found = {item.strategy: item.outcome for item in measurements if not item.twin_of}
    wanted = dict.fromkeys(found, "ok")
    if case.stage == "reference":
        wanted = dict.fromkeys(found, outcome)
    elif case.stage not in ("twin", "limit", "process peak", "explanation"):
        wanted[victim] = outcome
    check(found == wanted, f"{found}, and it has to be {wanted}")
    for item in measurements:
        check((item.error is None) == (item.outcome == "ok"), f"{item.strategy}: {item.outcome} with {item.error}")
        said = item.error.message if item.error else "."
        check(said and "\n" not in said and "Traceback" not in said, f"no sentence: {said}")
    if case.stage != "claims":
        ranked = {slug for group in (run.ranking if case.stage != "sweep point" else []) for slug in group}
        check(ranked <= {slug for slug, is_ok in found.items() if is_ok == "ok"}, f"ranked: {ranked}")
    _figures_beside(case, run, fails=outcome != "ok")


def expected(case: Case) -> str:
    """The outcome of the strategy whose subject it is; of a stage that costs no outcome, that of the stage."""
    outcome = OF_SUBJECTS[case.kind]
    if case.moment == "end" and case.stage not in ("correctness", "first call"):
        return "ok"  # all that was wanted has been said
    if case.moment == "middle" and case.kind in _SPEAKS:
        return "failed"  # half a message, and then another, is none
    return outcome


def _figures_beside(case: Case, run: Run, *, fails: bool) -> None:
    """What follows the verdict is there, or is missing with a reason, and costs nothing else."""
    victim = next((item for item in run.measurements if item.strategy == VICTIM), None)
    match case.stage:
        case "limit":
            check((run.limit is None) == fails, f"the limit: {run.limit}")
        case "process peak":
            peak = victim and victim.memory and victim.memory.process_peak_bytes
            check((peak is None) == fails, f"the process peak: {peak}")
        case "explanation":
            why = victim and victim.why
            check(why and bool(why.note) == fails, f"why: {why}")
        case "first call" | "sampling":
            check(victim and victim.memory and victim.correctness, "what was measured before is lost")
