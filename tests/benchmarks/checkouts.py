"""Folders with the project's code, now and before, each with a process that measures with it when it is asked."""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from measure.judge.levels import Ratio
from measure.run.encoding import decode
from measure.run.run import Run
from tests.benchmarks.common import Problem, say

_WORKER = Path(__file__).with_name("checkout_worker.py")


@dataclass(frozen=True)
class Rerun:
    """A run; ``seconds`` from the request until each quick strategy had a figure, the verdict, the end; ``ratios`` of
    its strategies to a reference, but for the reference itself."""

    run: Run
    seconds: Sequence[float]
    ratios: Mapping[str, Ratio]


def once(path: Path, make: Callable[[], bytes]) -> bytes:
    """What is in the file, or else is made, and written to it."""
    if not path.exists():
        path.write_bytes(make())
    return path.read_bytes()


@dataclass(frozen=True)
class Checkout:
    """``keep``: the folder for its runs; ``after``: what is done after each of them."""

    name: str
    commit: str
    process: "subprocess.Popen[bytes]"
    keep: Path
    after: Callable[[], None]

    def compare(self, label: str, case: Problem, strategies: str | Sequence[str] = "default") -> Rerun:
        """The run of this label, without ratios: measured now, unless its file is there."""
        file = self.keep / f"{label}_{self.name}_{self.commit}.json"

        def measured() -> bytes:
            assert self.process.stdin is not None and self.process.stdout is not None
            asked = {"workload": case.workload, "size": case.size, "strategies": strategies, "file": str(file)}
            self.process.stdin.write(msgspec.json.encode(asked) + b"\n")
            self.process.stdin.flush()
            if not (answer := self.process.stdout.readline()):
                raise RuntimeError(f"the process of {self.name} has ended")
            self.after()
            return answer

        seconds = msgspec.json.decode(once(file.with_suffix(".seconds"), measured), type=list[float])
        run = decode(file.read_bytes())
        say(f"{label}, {self.name}: {run.status}, {seconds[-1]:.1f} s: {' | '.join(map(', '.join, run.ranking[:2]))}")
        return Rerun(run, seconds, {})


@contextlib.contextmanager
def opened(
    folders: Mapping[str, Path], keep: Path, after: Callable[[], None], **variables: str
) -> Iterator[list[Checkout]]:
    """A checkout of each folder by name, with a process of these environment ``variables``, whose runs nobody else
    uses."""
    pipe = subprocess.PIPE
    with contextlib.ExitStack() as stack:
        found = []
        for name, folder in folders.items():
            describe = ["git", "describe", "--always", "--dirty", "--exclude=*"]
            commit = subprocess.run(describe, cwd=folder, stdout=pipe, check=True, text=True).stdout.strip()
            command = [sys.executable, "-P", str(_WORKER)]
            home = stack.enter_context(tempfile.TemporaryDirectory(prefix="mapbench-benchmark-"))
            own = {"PYTHONPATH": str(folder), "MAPBENCH_HOME": f"{home}/home", "MAPBENCH_LOCK": f"{home}/measure.lock"}
            environment = {**os.environ, **own, **variables}
            process = subprocess.Popen(command, cwd=folder, env=environment, stdin=pipe, stdout=pipe)
            found.append(Checkout(name, commit, stack.enter_context(process), keep, after))
        yield found


def in_turns(number: int, checkouts: Sequence[Checkout]) -> Sequence[Checkout]:
    """The checkouts, of which neither is always the first."""
    return checkouts[:: 1 if number % 2 else -1]
