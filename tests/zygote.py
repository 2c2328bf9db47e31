"""Servers that start at once, to be killed: each is forked from this process, which has imported TensorFlow before.

``python -m tests.zygote HOME SLUG…``: for every line on stdin one server, which begins a small comparison of these
strategies with its store in HOME.
What it says on stdout: ``server PID``, ``run ID``, ``view SLUG…`` with the strategies whose outcome is known, before
anything is saved of it; ``finished``; and ``ended`` when it is gone. The runner, the store, the host and its subjects
are the project's own; only the interpreter of the host is forked in place of being started.
"""

import os
import sys
from pathlib import Path
from typing import Any

import tensorflow  # noqa: F401

from measure import runner
from measure.engine.bench import Settings
from measure.engine.host_launcher import HostLauncher
from measure.model.run import Run
from measure.store import store
from tests.engine import QUICK, small_request
from tests.forked import hosts_are_forked


def say(*words: str) -> None:
    os.write(1, (" ".join(words) + "\n").encode())


class Told(store.Store):
    def save(self, run: Run, **more: Any) -> None:
        say("view", *(m.strategy for m in run.measurements if m.outcome != "not_run" and m.memory))
        super().save(run, **more)


def serve(home: Path, *slugs: str) -> None:
    """One server, until its run has finished."""
    hosts_are_forked()
    own = runner.Runner(
        store_=Told(home),
        launcher_=HostLauncher(home / "host.log"),
        settings=Settings(rules=QUICK, probes=False, process_peaks_s=0.0),
    )
    run_id = own.submit(small_request(*slugs))
    say("run", run_id)
    own.wait(run_id)
    say("finished")
    own.close()


def main() -> None:
    for _ in iter(sys.stdin.readline, ""):
        pid = os.fork()
        if pid == 0:
            try:
                serve(Path(sys.argv[1]), *sys.argv[2:])
            finally:
                os._exit(0)
        say("server", str(pid))
        os.waitpid(pid, 0)
        say("ended")


if __name__ == "__main__":
    main()
