"""Strategies that misbehave in every way known to us: each gets its own outcome, and all others are measured."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from measure.engine import dialogue, fresh_launcher
from measure.engine.bench import Settings
from measure.engine.host_launcher import HostLauncher
from measure.model.run import Measurement, Run
from measure.model.run_file import decode, encode
from strategies.spec import MODES
from tests.engine import (
    LEAVE_A_PROCESS,
    eventually,
    left_behind,
    measure,
    running,
    small_request,
    write_mapper,
)
from tests.grid import untimed
from tests.warm import WARM

HEALTHY = ("batched.eager", "batched.graph", "batched.xla", "loop.eager")
# What a step may take; a healthy one takes a tenth of it.
TIMEOUT_S = 6.0


@dataclass(frozen=True)
class Fault:
    """The body of a mapper, and what must become of its strategy: outcome, stage, and the error's type and message."""

    body: str
    outcome: str
    stage: str = "memory"
    type: str = ""
    message: str = ""
    modes: tuple[str, ...] = ("eager",)


# Calls are so long that each is a sample that is said at once. Before the third sample: the first call, three with
# other values in turns with three of the timed ones, one to come to the pace, and two samples.
_ELEVENTH_CALL = """
import os, time
if is_timed():
    time.sleep(0.1)
    if count_calls() == 11:
        {fault}
return map_rightly(fn, elems)
"""

FAULTS = {
    "raises": Fault(
        'raise ValueError("this one raises")', "failed", "memory", "ValueError", "^this one raises$",
        ("eager", "graph", "xla"),
    ),
    "returns_a_wrong_shape": Fault(
        "return tf.nest.map_structure(lambda leaf: leaf[:-1], map_rightly(fn, elems))",
        "wrong", "sampling", "WrongValues", "shape",
    ),
    "returns_a_wrong_dtype": Fault(
        "return tf.nest.map_structure(lambda leaf: tf.cast(leaf, tf.float64), map_rightly(fn, elems))",
        "wrong", "sampling", "WrongValues", "float64",
    ),
    "returns_nans": Fault(
        "return tf.nest.map_structure(lambda leaf: leaf * float('nan'), map_rightly(fn, elems))",
        "wrong", "sampling", "WrongValues", "(?i)nan",
    ),
    "returns_too_few_leaves": Fault(
        "return map_rightly(fn, elems)[:1]", "wrong", "sampling", "WrongValues", "(?i)lea|tensor|output"
    ),
    "returns_wrong_values": Fault(
        "return tf.nest.map_structure(lambda leaf: leaf * 1.01, map_rightly(fn, elems))",
        "wrong", "sampling", "WrongValues", "",
    ),
    "returns_no_tensor": Fault("return None", "wrong|failed", "sampling|memory|first_call", "", ""),
    "hangs_in_python": Fault(
        "import signal\nwhile True:\n    signal.pause()", "timeout", "memory", "Timeout", "within 6 s"
    ),
    "hangs_in_native_code": Fault(
        "import ctypes\nctypes.PyDLL(None).pause()  # holds the interpreter's lock",
        "timeout", "memory", "Timeout", "within 6 s",
    ),
    "stops_itself": Fault(
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", "timeout", "memory", "Timeout", "within 6 s"
    ),
    "exits": Fault("import sys\nsys.exit(3)", "failed", "memory", "SystemExit", "exit with status 3"),
    "exits_at_once": Fault("import os\nos._exit(3)", "failed", "memory", "Exit", "exit status 3"),
    "exits_as_if_all_were_well": Fault("import os\nos._exit(0)", "failed", "memory", "Exit", "exit status 0"),
    "aborts": Fault(
        "import ctypes\nctypes.CDLL(None).abort()", "failed", "memory", "SIGABRT", "aborted in native code"
    ),
    "frees_what_it_does_not_own": Fault(
        """
        import ctypes
        buffer = ctypes.create_string_buffer(4096)
        ctypes.CDLL(None).free(ctypes.c_void_p((ctypes.addressof(buffer) + 1024) // 16 * 16))
        """,
        "failed", "memory", "SIGABRT|SIGSEGV", "native code",
    ),
    "crashes": Fault("import ctypes\nctypes.string_at(1)", "failed", "memory", "SIGSEGV", "crashed in native code"),
    "is_killed": Fault("import os\nos.kill(os.getpid(), 9)", "failed", "memory", "SIGKILL", "killed from outside"),
    "interrupts_itself": Fault("raise KeyboardInterrupt", "failed", "memory", "KeyboardInterrupt", ""),
    "runs_out_of_memory_in_python": Fault(
        "np.empty(2**60, np.uint8)", "out_of_memory", "memory", "_ArrayMemoryError|MemoryError", "Unable to allocate"
    ),
    "writes_into_the_channel": Fault(
        "import os\nos.write(3, b'this is not a message\\n')\nreturn map_rightly(fn, elems)",
        "failed", "memory", "ProtocolError", "wrote into the channel",
    ),
    "writes_an_object_into_the_channel": Fault(
        "import os\nos.write(3, b'{}\\n')\nreturn map_rightly(fn, elems)",
        "failed", "memory", "ProtocolError", "wrote into the channel",
    ),
    "floods_the_channel": Fault(
        "import os\nwhile True:\n    os.write(3, b'x' * 65536)",
        "failed", "memory", "ProtocolError", "wrote into the channel",
    ),
    "closes_everything": Fault(
        "import os\nos.closerange(0, 256)\nreturn map_rightly(fn, elems)", "failed", "memory", "Exit", "exit status 70"
    ),
    "floods_its_output": Fault(
        """
        import os, sys
        if count_calls() == 1:
            for _ in range(16):
                os.write(1, b"o" * 2**20)
                os.write(2, b"e" * 2**20)
            print("and through Python")
            print("and through Python", file=sys.stderr)
        return map_rightly(fn, elems)
        """,
        "ok",
    ),
    "forks_and_both_go_on": Fault(
        "import os\nif count_calls() == 1:\n    os.fork()\nreturn map_rightly(fn, elems)", "ok"
    ),
    "leaves_processes": Fault("if count_calls() == 1:\n{leave}\nreturn map_rightly(fn, elems)", "ok"),
    "leaves_processes_and_aborts": Fault(
        "import ctypes\nif count_calls() == 1:\n{leave}\nctypes.CDLL(None).abort()",
        "failed", "memory", "SIGABRT", "aborted in native code",
    ),
    "leaves_processes_and_hangs": Fault(
        "import signal\nif count_calls() == 1:\n{leave}\nwhile True:\n    signal.pause()",
        "timeout", "memory", "Timeout", "within 6 s",
    ),
    "aborts_once_its_memory_is_known": Fault(
        "import os\nif not is_timed() and count_calls() > 2:\n    os.abort()\nreturn map_rightly(fn, elems)", "ok"
    ),
    "raises_only_where_it_is_timed": Fault(
        "if is_timed():\n    raise ValueError('only here')\nreturn map_rightly(fn, elems)",
        "failed", "first_call", "ValueError", "^only here$",
    ),
    "hangs_only_where_it_is_timed": Fault(
        "import signal\nwhile is_timed():\n    signal.pause()\nreturn map_rightly(fn, elems)",
        "timeout", "first_call", "Timeout", "within 6 s",
    ),
    "raises_while_sampled": Fault(
        _ELEVENTH_CALL.format(fault="raise ValueError('late')"), "failed", "sampling", "ValueError", "^late$"
    ),
    "exits_while_sampled": Fault(
        _ELEVENTH_CALL.format(fault="os._exit(5)"), "failed", "sampling", "Exit", "exit status 5"
    ),
    "hangs_while_sampled": Fault(
        _ELEVENTH_CALL.format(fault="time.sleep(1000)"), "timeout", "sampling", "Timeout", "no answer within"
    ),
}  # fmt: skip

SLUGS = {f"{name}.{mode}": name for name, fault in FAULTS.items() for mode in fault.modes}


@pytest.fixture(scope="module")
def pids(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pids") / "pids"


@pytest.fixture(scope="module")
def run(host: HostLauncher, tmp_path_factory: pytest.TempPathFactory, pids: Path) -> Run:
    """One comparison of all of them beside healthy strategies."""
    folder = tmp_path_factory.mktemp("faults")
    mappers = folder / "mappers"
    mappers.mkdir()
    leave = "\n".join("    " + line for line in LEAVE_A_PROCESS.format(path=str(pids)).splitlines())
    for name, fault in FAULTS.items():
        write_mapper(mappers, name, fault.body.replace("{leave}", leave), fault.modes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dialogue, "PATIENCE_S", 1.0)  # for one that stops itself
        patch.setenv("MAPBENCH_MAPPERS", str(mappers))
        # Nobody is run once more without oneDNN, in a fresh interpreter each: that has a test of its own.
        patch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
        with running(host, folder, timeout_floor_s=TIMEOUT_S, process_peaks_s=5.0) as own:
            return measure(own, small_request(*HEALTHY, *SLUGS))


@pytest.mark.parametrize("slug", HEALTHY)
def test_strategies_beside_faulty_ones_are_measured(run: Run, slug: str):
    item = run.measurement(slug)
    assert (item.outcome, item.error) == ("ok", None)
    assert item.latency is not None and item.first_call_s is not None and item.memory is not None
    assert item.correctness is not None and item.correctness.ok


@pytest.mark.parametrize("slug", SLUGS)
def test_each_fault_ends_as_its_own_outcome_with_stage_and_message(run: Run, slug: str):
    fault, item = FAULTS[SLUGS[slug]], run.measurement(slug)
    if fault.outcome == "ok":
        assert (item.outcome, item.error) == ("ok", None)
        assert item.latency is not None and item.memory is not None
        return
    assert item.error is not None, item
    assert re.fullmatch(fault.outcome, item.outcome), item.error
    assert re.fullmatch(fault.stage, item.stage), item.error
    assert re.fullmatch(fault.type or ".*", item.error.type), item.error
    assert re.search(fault.message, item.error.message), item.error
    assert "\n" not in item.error.message and len(item.error.message) <= 400
    assert all(slug not in group for group in run.ranking)


def test_the_run_is_complete_and_ranks_only_what_is_right(run: Run):
    assert run.status == "complete"
    assert {slug for group in run.ranking for slug in group} == {
        item.strategy for item in run.measurements if item.outcome == "ok" and not item.twin_of
    }


def test_the_run_file_holds_all_of_it(run: Run):
    assert decode(encode(run)) == run


def test_what_was_measured_before_a_fault_is_kept(run: Run):
    for slug in ("raises_only_where_it_is_timed.eager", "hangs_only_where_it_is_timed.eager"):
        item = run.measurement(slug)
        assert item.memory is not None and item.correctness is not None and item.correctness.ok
    for slug in ("raises_while_sampled.eager", "exits_while_sampled.eager", "hangs_while_sampled.eager"):
        item = run.measurement(slug)
        assert item.memory is not None and item.first_call_s is not None and len(item.replicas[0].samples_s) == 2
        assert item.replicas[0].ended == item.outcome


def test_an_error_keeps_its_full_text(run: Run):
    for mode in ("eager", "graph", "xla"):
        error = run.measurement(f"raises.{mode}").error
        assert error is not None and "Traceback" in error.detail and "in map_with_raises" in error.detail


def test_last_words_of_a_native_abort_are_kept(run: Run):
    error = run.measurement("frees_what_it_does_not_own.eager").error
    assert error is not None and (error.type == "SIGSEGV" or "free(): invalid" in error.message)


def test_wrong_outputs_say_where(run: Run):
    def of(name: str) -> Measurement:
        return run.measurement(f"{name}.eager")

    nans = of("returns_nans").correctness
    assert nans is not None and nans.nan_mismatches == 4 * 8 + 4
    values = of("returns_wrong_values").correctness
    assert values is not None and values.max_rel == pytest.approx(0.01, rel=1e-3)
    for name in ("returns_a_wrong_shape", "returns_wrong_values", "returns_nans"):
        assert of(name).latency is not None, "a wrong strategy keeps its row"


def test_no_process_that_a_strategy_made_is_left(run: Run, pids: Path):
    assert len(pids.read_text().split()) >= 6, "nobody left a process behind"
    eventually(lambda: not left_behind(pids), "the processes that strategies left behind are gone")


# --- what oneDNN computes --------------------------------------------------------------------------------------------


def test_a_rerun_without_onednn_names_it_where_it_is_to_blame(
    host: HostLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """TensorFlow reads the setting when it is loaded, so only another interpreter can have another one."""
    mappers = tmp_path / "mappers"
    mappers.mkdir()
    doubled = "return tf.nest.map_structure(lambda leaf: 2 * leaf, map_rightly(fn, elems))"
    without = 'import os\nif os.environ.get("TF_ENABLE_ONEDNN_OPTS") == "0":\n    return map_rightly(fn, elems)\n'
    write_mapper(mappers, "wrong_with_onednn", without + doubled)
    write_mapper(mappers, "dies_with_onednn", without + "os.abort()")
    write_mapper(mappers, "wrong_anyway", doubled)
    monkeypatch.setenv("MAPBENCH_MAPPERS", str(mappers))
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS", raising=False)
    slugs = ("wrong_with_onednn.eager", "dies_with_onednn.eager", "wrong_anyway.eager", "batched.eager")
    monkeypatch.setattr(fresh_launcher, "subprocess", WARM)
    run = untimed(small_request(*slugs), host, Settings(timeout_floor_s=60.0))
    codes = {item.strategy: [warning.code for warning in item.warnings] for item in run.measurements}
    assert [run.measurement(slug).outcome for slug in slugs[:3]] == ["wrong", "failed", "wrong"]
    assert codes == {slugs[0]: ["onednn"], slugs[1]: ["onednn"], slugs[2]: [], slugs[3]: []}
    assert "TF_ENABLE_ONEDNN_OPTS=0" in run.measurement(slugs[0]).warnings[0].message


# --- memory ----------------------------------------------------------------------------------------------------------


_HOG = """
first = tf.reshape(tf.nest.flatten(elems)[0], [-1])[0]
large = first * tf.reshape(tf.range(2.0**23), [-1, 64])  # 32 MiB
product = tf.linalg.matmul(large, large[:64])  # and as much again
outputs = map_rightly(fn, elems)
return tf.nest.map_structure(lambda leaf: leaf + 0.0 * tf.reduce_max(tf.sort(product)), outputs)
"""


@pytest.fixture(scope="module")
def limited(host: HostLauncher, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A comparison under a limit of 48 MiB, where one mapper needs more than 64 MiB, the others next to nothing."""
    folder = tmp_path_factory.mktemp("limited")
    mappers = folder / "mappers"
    mappers.mkdir()
    write_mapper(mappers, "hog", _HOG, ("graph", "xla"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAPBENCH_MAPPERS", str(mappers))
        # TensorFlow waits 10 s for memory to be freed before it gives up.
        with running(host, folder, timeout_floor_s=60.0) as own:
            return measure(own, small_request("batched", "hog", memory_limit_mib=48))


@pytest.mark.parametrize("mode", ["graph", "xla"])
def test_what_needs_more_than_the_memory_limit_is_out_of_memory_and_never_timed(limited: Run, mode: str):
    item = limited.measurement(f"hog.{mode}")
    assert (item.outcome, item.stage) == ("out_of_memory", "memory"), item.error
    assert item.error is not None and item.error.type.startswith("ResourceExhausted") and item.error.message
    assert item.replicas == []


@pytest.mark.parametrize("mode", MODES)
def test_what_fits_into_the_memory_limit_is_measured(limited: Run, mode: str):
    item = limited.measurement(f"batched.{mode}")
    assert (item.outcome, item.error) == ("ok", None)
    assert item.latency is not None
