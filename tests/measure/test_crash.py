"""Servers that are killed at any moment of a run: what they had found out is kept, and nothing of them is left."""

import contextlib
import random
import re
import select
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Page, expect

from measure.engine.bench import clear_leftovers
from measure.model.run import Point, Run
from measure.store.store import Store
from tests.browser import AppServer, Watch
from tests.engine import GONE_WITHIN_S, ROOT, environment, eventually
from tests.steps import open_page, start, verdict

STRATEGIES = ("batched.eager", "loop.eager", "map_fn.eager")
KILLS = 6
_MOST_DELAY_S = 0.05
# In the environment of every process of a server, wherever it has gone: sessions and parents do not tell.
_MARK = "MAPBENCH_CRASH_TEST"


def marked(mark: str) -> list[int]:
    """The processes that live and have this mark."""
    pids = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(_MARK) == mark:
                pids.append(process.pid)
    return pids


def integrity(home: Path) -> list[tuple[str, ...]]:
    with contextlib.closing(sqlite3.connect(home / "runs.db")) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall()


@dataclass
class Server:
    """One server: its run, and which strategies it had said to be known at its last views."""

    pid: int
    run_id: str = ""
    known: list[list[str]] = field(default_factory=list)
    finished: bool = False


class Zygote:
    def __init__(self, home: Path, lock: Path) -> None:
        self.home = home
        self._mark = str(lock)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.zygote", str(self.home), *STRATEGIES],
            cwd=ROOT,
            env=environment(MAPBENCH_LOCK=str(lock), OPENBLAS_NUM_THREADS="1", **{_MARK: str(lock)}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
        )

    def words(self) -> list[str]:
        line = self._process.stdout.readline()
        assert line, "the zygote has ended"
        return line.split()

    def start(self, views: int | None = None) -> Server:
        """A server, once it has published so many views, or has finished."""
        self._process.stdin.write("\n")
        server = Server(int(self.words()[1]))
        while views is None or len(server.known) < views:
            kind, *words = self.words()
            if kind == "run":
                server.run_id = words[0]
            elif kind == "view":
                server.known.append(words)
            elif kind == "finished":  # a little earlier than the first one did
                server.finished = True
                break
        return server

    def until_ended(self, server: Server) -> None:
        while (words := self.words()) != ["ended"]:
            if words[0] == "view":
                server.known.append(words[1:])
            server.finished = server.finished or words == ["finished"]

    def servers(self) -> list[int]:
        """All processes that live and come from it."""
        return [pid for pid in marked(self._mark) if pid != self._process.pid]

    def wait_a_little(self, delay_s: float) -> None:
        select.select([self._process.stdout], [], [], delay_s)

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(60)


def is_closed(kept: Store, run_id: str) -> bool:
    return all(entry.status != "running" for entry in kept.entries() if entry.id == run_id)


def kill_often(zygote: Zygote, kills: int, phase: float) -> dict[str, str]:
    """Start servers and kill them; returns what is to be found of their runs, id → status.

    The kills are spread evenly over the views of a run; ``phase``, from 0 to 1, moves them between two views.
    """
    moments = random.Random(phase)
    whole = zygote.start()
    zygote.until_ended(whole)
    expected = {whole.run_id: "complete"}
    for number in range(kills):
        # How many views a run publishes varies a little: a server may have finished when its last moment comes.
        server = zygote.start(views=2 + int((number + phase) * len(whole.known) / kills))
        zygote.wait_a_little(moments.uniform(0.0, _MOST_DELAY_S))
        is_alive = server.pid in zygote.servers()
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(server.pid).kill()
        zygote.until_ended(server)
        assert is_alive or server.finished
        eventually(lambda: not zygote.servers(), "nothing is left", GONE_WITHIN_S)

        kept = Store(zygote.home)  # as the next server opens it
        # A process that ends loses what it is known by here a moment before its lock.
        eventually(partial(is_closed, kept, server.run_id), "it is closed")
        entries = {entry.id: entry.status for entry in kept.entries()}
        assert integrity(zygote.home) == [("ok",)]
        run = kept.load(server.run_id)
        assert run is not None, f"the run is lost after the views {server.known}"
        # It may have been killed between its last write and its saying so, but not before.
        assert run.status == "interrupted" or (run.status == "complete" and not server.finished) or server.finished
        expected[server.run_id] = "complete" if server.finished else run.status
        assert {run_id: entries[run_id] for run_id in expected} == expected
        if run.status == "complete":
            assert all(m.latency is not None for m in run.measurements)
            kept.close()
            continue
        assert "ended unexpectedly" in run.stop_reason and run.finished is not None
        assert run.request.strategies == list(STRATEGIES)
        measured = {m.strategy for m in run.measurements if m.memory is not None and m.correctness is not None}
        in_flight = set(server.known[-1]) - set(server.known[-2] if len(server.known) > 1 else [])
        assert len(in_flight) <= 1 and measured >= set(server.known[-1]) - in_flight
        kept.close()
    clear_leftovers()  # what the next server does at its start
    assert not list(Path(tempfile.gettempdir()).glob(f"mapbench-case-{server.pid}-*"))
    return expected


def test_servers_that_are_killed_at_any_moment_lose_at_most_the_strategy_in_flight(tmp_path: Path):
    """Two at a time, that share one store."""
    home = tmp_path / "home"
    zygotes = [Zygote(home, tmp_path / f"{number}.lock") for number in range(2)]
    try:
        with ThreadPoolExecutor() as threads:
            work = [
                threads.submit(kill_often, zygote, KILLS // 2, phase)
                for phase, zygote in zip((0.25, 0.75), zygotes, strict=True)
            ]
            expected = {run_id: status for future in work for run_id, status in future.result().items()}
    finally:
        for zygote in zygotes:
            zygote.close()
    assert len(expected) == KILLS + 2
    assert list(expected.values()).count("interrupted") >= KILLS // 2
    assert {entry.id: entry.status for entry in Store(home).entries()} == expected
    assert integrity(home) == [("ok",)]


def was_measured(points: Sequence[Point]) -> dict[tuple[int, str], tuple[Any, ...]]:
    """(batch, strategy) → what was measured there."""
    return {
        (point.at["batch"], item.strategy): (item.memory, item.correctness, item.first_call_s, item.replicas[0])
        for point in points
        for item in point.measurements
        if item.replicas
    }


def test_a_sweep_that_is_killed_keeps_its_points(tmp_path: Path):
    """A command line, as its user starts it."""
    home = tmp_path / "home"
    mark = str(tmp_path)
    env = environment(MAPBENCH_HOME=str(home), MAPBENCH_LOCK=str(tmp_path / "lock"), **{_MARK: mark})
    command = ["sweep", "square", "--size", "batch=1:100000", "--strategies", "batched.eager,loop.eager,map_fn.graph"]
    process = subprocess.Popen(
        [sys.executable, "-m", "measure", *command, "--budget", "300"], cwd=ROOT, env=env,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    watching = Store(home)
    try:
        eventually(lambda: (home / "runs.db").exists() and watching.ids(), "the sweep is kept")
        (run_id,) = watching.ids()
        eventually(lambda: len(measured_points(watching.load(run_id))) >= 2, "two points are measured")
        assert {entry.status for entry in watching.entries()} == {"running"} and len(marked(mark)) >= 2
        before = measured_points(watching.load(run_id))
    finally:
        process.kill()
        process.wait()
    eventually(lambda: not marked(mark), "nothing is left", GONE_WITHIN_S)
    run = Store(home).load(run_id)
    assert integrity(home) == [("ok",)]
    assert run.status == "interrupted" and "ended unexpectedly" in run.stop_reason and run.finished is not None
    # Intervals borrow from points that were measured since; what was measured by then is there.
    assert was_measured(before).items() <= was_measured(run.points).items()
    assert {point.status for point in run.points} <= {"complete", "budget", "interrupted"} and run.verdict


def measured_points(run: Run) -> list[Point]:
    return [point for point in run.points if point.status == "complete"]


def test_a_server_that_is_killed_leaves_its_run_to_the_next_one(page: Page, watch: Watch, tmp_path: Path):
    """The server that people start, while a browser looks on."""
    home, mark = tmp_path / "home", str(tmp_path)
    env = {_MARK: mark, "MAPBENCH_LOCK": str(tmp_path / "lock")}
    server = AppServer.start(ROOT / "app.py", home, env)
    try:
        open_page(page, server, "?size_batch=64&budget=60&strategies=loop.eager&strategies=map_fn.eager")
        run_id = start(page)
        watching = Store(home)
        eventually(lambda: any(m.memory for m in watching.load(run_id).measurements), "something is known")
        assert len(marked(mark)) >= 2
    finally:
        server.process.kill()
        server.process.wait()
    eventually(lambda: not marked(mark), "nothing is left", GONE_WITHIN_S)
    page.goto("about:blank")
    following = AppServer.start(ROOT / "app.py", home, env, "tests.simulated_server")  # nothing is measured any more
    try:
        run = Store(home).load(run_id)
        assert integrity(home) == [("ok",)] and run.status == "interrupted" and "ended unexpectedly" in run.stop_reason
        assert any(m.memory is not None for m in run.measurements)
        open_page(page, following, f"?run={run_id}")
        expect(page.get_by_text("Interrupted: the process that measured it ended unexpectedly")).to_be_visible()
        assert verdict(page) == (run.verdict or "No verdict was reached.")
    finally:
        page.goto("about:blank")
        assert following.stop() == []
    watch.forgive(re.escape(server.url))  # the connection that was lost
