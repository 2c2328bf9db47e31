"""Servers that are killed at any moment of a run: what they had found out is kept, and nothing of them is left."""

import random
import select
import sqlite3
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from measure.comparison import clear_leftovers
from measure.store import Store
from tests.engine import GONE_WITHIN_S, ROOT, descendants, environment, eventually, is_alive

STRATEGIES = ("batched.eager", "loop.eager", "map_fn.eager")
KILLS = 20
# The end of a run is left out, since how many views it publishes varies a little.
_SHARE = 0.8
_MOST_DELAY_S = 0.05


@dataclass
class Server:
    """One server: its run, and which strategies it had said to be known at its last views."""

    pid: int
    run_id: str = ""
    known: list[list[str]] = field(default_factory=list)


class Zygote:
    def __init__(self, home: Path, lock: Path) -> None:
        self.home = home
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.zygote", str(self.home), *STRATEGIES],
            cwd=ROOT,
            env=environment(MAPBENCH_LOCK=str(lock), OPENBLAS_NUM_THREADS="1"),
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
            elif kind == "finished":
                assert views is None, f"it finished after {len(server.known)} views"
                break
        return server

    def until_ended(self, server: Server) -> None:
        while (words := self.words()) != ["ended"]:
            if words[0] == "view":
                server.known.append(words[1:])

    def wait_a_little(self, delay_s: float) -> None:
        select.select([self._process.stdout], [], [], delay_s)

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(60)


def kill_often(zygote: Zygote, kills: int, moments: random.Random) -> dict[str, str]:
    """Start servers and kill them; returns what is to be found of their runs, id → status."""
    whole = zygote.start()
    zygote.until_ended(whole)
    expected = {whole.run_id: "complete"}
    for _ in range(kills):
        server = zygote.start(views=moments.randint(1, int(_SHARE * len(whole.known))))
        zygote.wait_a_little(moments.uniform(0.0, _MOST_DELAY_S))
        left = [server.pid, *descendants(server.pid)]
        psutil.Process(server.pid).kill()
        zygote.until_ended(server)
        eventually(lambda left=left: not [pid for pid in left if is_alive(pid)], "nothing is left", GONE_WITHIN_S)

        kept = Store(zygote.home)  # as the next server opens it
        expected[server.run_id] = "interrupted"
        assert {entry.id: entry.status for entry in kept.entries() if entry.id in expected} == expected
        run = kept.load(server.run_id)
        assert "ended unexpectedly" in run.stop_reason and run.finished is not None
        assert run.request.strategies == list(STRATEGIES)
        measured = {m.strategy for m in run.measurements if m.memory is not None and m.correctness is not None}
        in_flight = set(server.known[-1]) - set(server.known[-2] if len(server.known) > 1 else [])
        assert len(in_flight) <= 1 and measured >= set(server.known[-1]) - in_flight
        kept.close()
    clear_leftovers()  # what the next server does at its start
    assert not list(Path(tempfile.gettempdir()).glob(f"mapbench-case-{server.pid}-*"))
    return expected


@pytest.mark.slow
def test_servers_that_are_killed_at_any_moment_lose_at_most_the_strategy_in_flight(tmp_path: Path):
    """Two at a time, that share one store."""
    home = tmp_path / "home"
    zygotes = [Zygote(home, tmp_path / f"{number}.lock") for number in range(2)]
    try:
        with ThreadPoolExecutor() as threads:
            work = [
                threads.submit(kill_often, zygote, KILLS // 2, random.Random(seed))
                for seed, zygote in enumerate(zygotes)
            ]
            expected = {run_id: status for each in work for run_id, status in each.result().items()}
    finally:
        for zygote in zygotes:
            zygote.close()
    assert len(expected) == KILLS + 2
    assert {entry.id: entry.status for entry in Store(home).entries()} == expected
    with sqlite3.connect(home / "runs.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
