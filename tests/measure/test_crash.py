"""A server that is killed: nothing of it is left, and what it had found out is there for the next one."""

import contextlib
import sqlite3
import subprocess
from pathlib import Path

import pytest

from measure.store.store import Store
from tests.deadlines import GONE_S
from tests.engine import (
    LEAVE_A_PROCESS,
    ROOT,
    descendants,
    environment,
    eventually,
    is_alive,
    left_behind,
    start_command,
    write_mapper,
)


@pytest.mark.usefixtures("live")
def test_a_server_that_is_killed_while_strategies_hang_leaves_its_results_and_nothing_else(tmp_path: Path):
    home, hanging, left, mappers = (tmp_path / name for name in ("home", "pids", "left", "mappers"))
    mappers.mkdir()
    note = f"import os\nwith open({str(hanging)!r}, 'a') as file:\n    file.write(f'{{os.getpid()}}\\n')\n"
    write_mapper(mappers, "in_native_code", note + "import ctypes\nctypes.PyDLL(None).pause()")
    leave = LEAVE_A_PROCESS.format(path=str(left))
    write_mapper(mappers, "in_python", leave + note + "while True:\n    pass")
    server = start_command(
        *("compare", "outer_product", "--size", "batch=2", "--size", "side=2"),
        *("--strategies", "batched.eager,in_native_code,in_python"),
        cwd=ROOT,
        env=environment(MAPBENCH_HOME=str(home), MAPBENCH_LOCK=str(tmp_path / "lock"), MAPBENCH_MAPPERS=str(mappers)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    watching = Store(home)
    try:
        eventually(lambda: hanging.exists() and len(hanging.read_text().split()) >= 2, "both strategies hang")
        eventually(lambda: len(left_behind(left)) >= 2, "processes are left behind")
        (run_id,) = eventually(watching.ids, "the run is in the store")
        known = eventually(
            lambda: watching.load(run_id).measurement("batched.eager").memory, "the other one's memory is kept"
        )
        assert [entry.status for entry in watching.entries()] == ["running"]
        pids = {*left_behind(left), *descendants(server.pid)}
    finally:
        server.kill()
        server.wait()
    eventually(lambda: not [pid for pid in pids if is_alive(pid)], f"all {len(pids)} processes are gone", GONE_S)
    run = Store(home).load(run_id)  # as the next server opens it
    assert run is not None and (run.status, run.finished is None) == ("interrupted", False)
    assert "ended unexpectedly" in run.stop_reason
    assert run.measurement("batched.eager").memory == known
    with contextlib.closing(sqlite3.connect(home / "runs.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
