"""Strategies that misbehave in real processes: each gets its own outcome, and all others are measured. Of a server that
is killed meanwhile nothing is left, and what it had found out is there for the next one.

At which stage of a run it happens makes no difference to that: stages are looked at with simulated subjects.
"""

import contextlib
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from measure.engine.bench import Settings
from measure.pool.launcher import Launcher
from measure.store.store import Store
from tests.deadlines import GONE_S, RUN_S
from tests.engine import (
    LEAVE_A_PROCESS,
    ROOT,
    WAIT_UNTIL_LEFT,
    descendants,
    environment,
    eventually,
    is_alive,
    left_behind,
    small_request,
    write_mapper,
)  # fmt: skip
from tests.grid import untimed
from tests.keeping import ids

HEALTHY = ("batched.eager", "batched.xla")

LIMIT_MIB = 48
# Twice 32 MiB.
_HOG = """
first = tf.reshape(tf.nest.flatten(elems)[0], [-1])[0]
large = first * tf.reshape(tf.range(2.0**23), [-1, 64])
product = tf.linalg.matmul(large, large[:64])
outputs = map_rightly(fn, elems)
return tf.nest.map_structure(lambda leaf: leaf + 0.0 * tf.reduce_max(tf.sort(product)), outputs)
"""

# Name → the body of a mapper, and what must become of its strategy: outcome, the error's type, and what is said of it.
FAULTS = {
    # TensorFlow waits 10 s for memory to be freed before it gives up: the others go on meanwhile.
    "takes_more_than_the_memory_limit": (_HOG, "out_of_memory", "ResourceExhausted.*", ""),
    "raises": ('raise ValueError("this one raises")', "failed", "ValueError", "^this one raises$"),
    "returns_wrong_values": (
        "return tf.nest.map_structure(lambda leaf: leaf * 1.01, map_rightly(fn, elems))", "wrong", "WrongValues", ""
    ),
    "exits": ("import sys\nsys.exit(3)", "failed", "SystemExit", "status 3"),
    "is_killed": ("import os\nos.kill(os.getpid(), 9)", "failed", "SIGKILL", "killed from outside"),
    "runs_out_of_memory_in_python": ("np.empty(2**60, np.uint8)", "out_of_memory", ".*MemoryError", "allocate"),
    "writes_into_the_channel": (
        "import os\nos.write(3, b'this is not a message\\n')\nreturn map_rightly(fn, elems)",
        "failed", "ProtocolError", "wrote into the channel",
    ),
    "floods_the_channel": (
        "import os\nwhile True:\n    os.write(3, b'x' * 2**16)", "failed", "ProtocolError", "wrote into the channel"
    ),
    "closes_everything": (
        "import os\nos.closerange(0, 256)\nreturn map_rightly(fn, elems)", "failed", "Exit", "status 70"
    ),
    "floods_its_output": (
        "import os\nif count_calls() == 1:\n    os.write(1, b'o' * 2**24)\nreturn map_rightly(fn, elems)", "ok", "", ""
    ),
    "leaves_processes": ("if count_calls() == 1:\n{leave}\nreturn map_rightly(fn, elems)", "ok", "", ""),
    "leaves_processes_and_aborts": (
        "import ctypes\nif count_calls() == 1:\n{leave}\nctypes.CDLL(None).abort()", "failed", "SIGABRT", ""
    ),
}  # fmt: skip
HANGING = {
    "hangs_in_native_code": "import ctypes\nctypes.PyDLL(None).pause()  # holds the interpreter's lock",
    "stops_itself": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "leaves_processes_and_hangs": "import signal\n{leave}\nwhile True:\n    signal.pause()",
}


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where processes that are left behind note their numbers; and all these mappers are there."""
    mappers, path = tmp_path / "mappers", tmp_path / "pids"
    mappers.mkdir()
    leaving = (LEAVE_A_PROCESS + WAIT_UNTIL_LEFT).format(path=str(path))
    leave = "\n".join("    " + line for line in leaving.splitlines())
    for name, (body, *_) in FAULTS.items():
        write_mapper(mappers, name, body.replace("{leave}", leave))
    for name, body in HANGING.items():
        write_mapper(mappers, name, body.replace("{leave}", leaving))
    monkeypatch.setenv("MAPBENCH_MAPPERS", str(mappers))
    return path


def test_each_fault_ends_as_its_own_outcome_and_strategies_beside_it_are_measured(host: Launcher, left: Path):
    slugs = [f"{name}.eager" for name in FAULTS]
    asked = small_request(*slugs, *HEALTHY, memory_limit_mib=LIMIT_MIB)
    run = untimed(asked, host, Settings(timeout_floor_s=RUN_S))
    for slug in HEALTHY:
        item = run.measurement(slug)
        assert item.error is None and item.memory is not None and item.correctness is not None and item.correctness.ok
    for slug, (_, outcome, type_, message) in zip(slugs, FAULTS.values(), strict=True):
        item = run.measurement(slug)
        if outcome == "ok":
            assert item.error is None and item.memory is not None and item.outcome in ("ok", "not_run")
            continue
        assert item.outcome == outcome and item.error is not None and re.fullmatch(type_, item.error.type), item.error
        assert re.search(message, item.error.message) and "\n" not in item.error.message, item.error
    error = run.measurement("raises.eager").error
    assert error is not None and "Traceback" in error.detail and "in map_with_raises" in error.detail
    values = run.measurement("returns_wrong_values.eager").correctness
    assert values is not None and values.max_rel == pytest.approx(0.01, rel=1e-3)
    assert len(left.read_text().split()) >= 2, "somebody left a process behind"
    eventually(lambda: not left_behind(left), "the processes that strategies left behind are gone", GONE_S)


def test_what_hangs_ends_as_a_timeout_with_all_that_it_has_made(host: Launcher, left: Path):
    slugs = [f"{name}.eager" for name in HANGING]
    run = untimed(small_request(HEALTHY[0], *slugs), host, Settings(timeout_floor_s=1.0))
    healthy, *hanging = run.measurements
    assert healthy.memory is not None and len(hanging) == len(slugs)
    # Who hangs while nobody else has been measured is not timed, all others are timeouts.
    assert {item.outcome for item in hanging} <= {"timeout", "not_run"}
    assert all(item.error and item.error.message.startswith("no answer within ") for item in hanging)
    eventually(lambda: not left_behind(left), "nothing is left", GONE_S)


# The command line, where a step of a subject has as long as other deadlines of tests.
PATIENT = """
import runpy
from dataclasses import replace
from measure import making
from tests.deadlines import RUN_S
making.SETTINGS = replace(making.SETTINGS, timeout_floor_s=RUN_S)
runpy.run_module("measure", run_name="__main__", alter_sys=True)
"""


@pytest.mark.usefixtures("live")
def test_a_server_that_is_killed_while_strategies_hang_leaves_its_results_and_nothing_else(tmp_path: Path):
    home, hanging, left, mappers = (tmp_path / name for name in ("home", "pids", "left", "mappers"))
    mappers.mkdir()
    note = f"import os\nwith open({str(hanging)!r}, 'a') as file:\n    file.write(f'{{os.getpid()}}\\n')\n"
    write_mapper(mappers, "in_native_code", note + "import ctypes\nctypes.PyDLL(None).pause()")
    leave = LEAVE_A_PROCESS.format(path=str(left))
    write_mapper(mappers, "in_python", leave + note + "while True:\n    pass")
    asked = "compare outer_product --size batch=2 --size side=2 --strategies batched.eager,in_native_code,in_python"
    settings = {"MAPBENCH_HOME": home, "MAPBENCH_LOCK": tmp_path / "lock", "MAPBENCH_MAPPERS": mappers}
    server = subprocess.Popen(
        [sys.executable, "-c", PATIENT, *asked.split()],
        cwd=ROOT,
        env=environment(**{name: str(path) for name, path in settings.items()}),
        start_new_session=True,
        **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL),
    )
    watching = Store(home)
    try:
        eventually(lambda: hanging.exists() and len(hanging.read_text().split()) >= 2, "both strategies hang")
        eventually(lambda: len(left_behind(left)) >= 2, "processes are left behind")
        (run_id,) = eventually(lambda: ids(watching), "the run is in the store")
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
