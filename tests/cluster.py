"""A scheduler, a dashboard and machines, as processes on this one, by the commands of the docs."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import psutil

from measure.client import Client
from measure.run.run import Run
from measure.store.store import Store
from tests.browser import ROOT, free_port
from tests.deadlines import GONE_S, RUN_S
from tests.engine import environment, eventually
from tests.subjects import GO_ON
from tests.test_docs import blocks

# In this order: install, scheduler, dashboard; and on the box: install, worker.
INSTALL, SCHEDULER, DASHBOARD, _, MACHINE = (
    line for block in blocks(ROOT / "docs/machines.md", "sh")[:2] for line in block.splitlines()
)
_SERVED = ("--server.headless", "true", "--server.fileWatcherType", "none", "--browser.gatherUsageStats", "false")


class Cluster:
    """``client``: of the dashboard's store."""

    def __init__(self, folder: Path, *, simulated: bool, lock: str = "") -> None:
        """``simulated``: nothing is measured for real; ``lock``: of all of them, which would measure at the same time
        without it."""
        self.folder, self._simulated, self._lock = folder, simulated, lock
        self.address = f"tcp://127.0.0.1:{free_port()}"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.client = Client(Store(folder / "dashboard"))

    def start(self, name: str, **variables: str) -> None:
        """Start the scheduler, the dashboard, or a machine of this name."""
        command = {"scheduler": SCHEDULER, "dashboard": DASHBOARD}.get(name, MACHINE)
        own = {"tcp://dashboard:8786": self.address, "8786": self.address.rpartition(":")[2], "gpu-box": name}
        words = [own.get(word, word) for word in shlex.split(command)]
        if name == "dashboard":
            variables = {words.pop(0).partition("=")[0]: self.address} | variables
            words += ["--server.port", str(free_port()), *_SERVED]
        if name == "scheduler":
            words += ["--host", "127.0.0.1"]
        elif self._simulated:
            words.insert(0, "tests.simulated_worker")
        words[0] = {"mapbench": "measure"}.get(words[0], words[0])
        variables |= {"MAPBENCH_HOME": str(self.folder / name)}
        variables |= {"MAPBENCH_LOCK": self._lock or str(self.folder / f"{name}.lock")}
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", *words], env=environment(**variables), cwd=ROOT, stdout=log, stderr=log
            )

    def kill(self, name: str) -> None:
        """Kill a process; of the dashboard the worker, too, which would end what is measured before it ends."""
        process = self.processes[name]
        both = [process.pid, *(child.pid for child in psutil.Process(process.pid).children() if name == "dashboard")]
        for pid in both:
            os.kill(pid, signal.SIGKILL)
        process.wait(GONE_S)

    def go_on(self, name: str) -> None:
        """Let a machine's runs that are held go on."""
        (self.folder / name / GO_ON).touch()

    def ended(self, run_id: str) -> Run:
        assert self.client.wait(run_id, RUN_S), self.client.snapshot(run_id)
        snapshot = self.client.snapshot(run_id)
        assert snapshot is not None
        return snapshot.run

    def left(self) -> list[str]:
        """The commands of all that still runs."""
        commands = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("MAPBENCH_HOME", "").startswith(str(self.folder)):
                    commands.append(" ".join(process.cmdline()))
        return commands

    def end(self) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.processes.values():
            process.wait(GONE_S)
        eventually(lambda: self.left() == [], "nothing is left running")
