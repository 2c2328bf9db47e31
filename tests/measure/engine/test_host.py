"""The host, its subjects and their lines: what comes in and goes out, and that nothing outlives whom it belongs to."""

import os
import queue
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from measure.engine import fresh_launcher, host_launcher
from measure.engine.dialogue import Dialogues, HostLost, SubjectFailed, ended
from measure.engine.fresh_launcher import FreshLauncher
from measure.engine.host_launcher import HostLauncher
from measure.engine.launcher import Event, Launcher
from measure.subject import messages
from measure.subject.messages import Lines, ProtocolError, Spec, encode
from tests import forked
from tests.engine import (
    DEADLINE_S,
    GONE_WITHIN_S,
    LEAVE_A_PROCESS,
    ROOT,
    WAIT_UNTIL_LEFT,
    descendants,
    environment,
    eventually,
    is_alive,
    left_behind,
    running_host,
    talk,
    write_mapper,
)
from tests.warm import WARM

SCRIPT = """
import tensorflow as tf

elems = tf.ones([4, 4])


def strategy(elems):
    {body}
    return elems + 1.0
"""


# The strategy, and below it: calls in a row, one call, the role, the subject, `main`, the command.
MOST_FRAMES = 7
TELL_FRAMES = """
import sys
frame, names = sys._getframe(), []
while frame:
    names.append(frame.f_code.co_name)
    frame = frame.f_back
raise RuntimeError(" ".join(names))
"""


def timing(name: str, body: str = "pass", before: str = "") -> Spec:
    body = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ").lstrip()
    return Spec(role="timing", name=name, script=before + SCRIPT.format(body=body))


# --- lines -----------------------------------------------------------------------------------------------------------


def test_messages_survive_any_cutting_of_the_stream():
    messages = [{"event": "first_call", "seconds": 1.5}, {"text": "zwölf\nlines"}, {"n": list(range(50))}]
    stream = b"".join(map(encode, messages))
    for step in (1, 2, 7, 64, len(stream)):
        decoder, received = Lines(), []
        for start in range(0, len(stream), step):
            received += decoder.feed(stream[start : start + step])
        assert received == messages


def test_numbers_that_are_not_finite_become_null():
    assert Lines().feed(encode({"seconds": float("inf"), "ratio": float("nan")})) == [{"seconds": None, "ratio": None}]


@pytest.mark.parametrize("line", [b"no json\n", b"[1]\n", b"3\n", b'"text"\n', b"\xff\xfe\n", b'{"a": 1\n'])
def test_what_is_not_a_message_is_refused(line: bytes):
    with pytest.raises(ProtocolError, match="not a message"):
        Lines().feed(line)


def test_a_line_that_never_ends_is_refused():
    lines = Lines(longest=1000)
    assert lines.feed(b"x" * 1000) == []
    with pytest.raises(ProtocolError, match="longer than 1000 bytes"):
        lines.feed(b"x")


# --- what the end of a process means ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "outcome", "type_", "message"),
    [
        ({"status": 3, "signal": None, "tail": ""}, "failed", "Exit", "exit status 3"),
        ({"status": None, "signal": 6, "tail": "free(): invalid size\n"}, "failed", "SIGABRT", "free(): invalid size"),
        ({"status": None, "signal": 9, "tail": "a progress bar"}, "failed", "SIGKILL", "its memory runs out"),
        ({"status": None, "signal": 9, "for_memory": False, "tail": ""}, "failed", "SIGKILL", "its memory runs out"),
        ({"status": None, "signal": 9, "for_memory": True, "tail": ""}, "out_of_memory", "SIGKILL", "memory ran out"),
        ({"status": None, "signal": 11, "for_memory": True, "tail": ""}, "failed", "SIGSEGV", "crashed in native code"),
        ({"status": None, "signal": 6, "tail": "std::bad_alloc"}, "out_of_memory", "bad_alloc", "out of memory"),
        (
            {"status": None, "signal": 11, "tail": "Allocator ran out of memory trying to allocate 32.00MiB\n***_"},
            "out_of_memory",
            "ResourceExhausted",
            "out of memory",
        ),
        ({"status": None, "signal": 64, "tail": ""}, "failed", "SIGRTMAX", "SIGRTMAX"),
        ({"status": None, "signal": 99, "tail": ""}, "failed", "signal 99", "signal 99"),
    ],
)
def test_the_end_of_a_process_becomes_an_outcome_and_a_sentence(fields, outcome, type_, message):
    failure = ended(fields)
    assert (failure.outcome, failure.error.type) == (outcome, type_)
    assert message in failure.error.message and failure.error.detail == fields["tail"]


def test_what_tensorflow_logged_before_is_not_taken_for_last_words():
    logged = "2026-01-01 12:00:00.123456: E external/local_xla/cuda_platform.cc:51] failed call to cuInit: UNKNOWN"
    fields = {"status": None, "signal": signal.SIGSEGV, "tail": f"free(): invalid size\n{logged}\n"}
    assert ended(fields).error.message == "the process crashed in native code: free(): invalid size"
    assert ended({**fields, "tail": logged}).error.message == "the process crashed in native code"


# --- dialogues -------------------------------------------------------------------------------------------------------


class _Scripted:
    """A launcher whose subjects are made of events that a test puts into the queue."""

    start_method = "fork"

    def __init__(self) -> None:
        self.started: list[int] = []
        self.killed: list[int] = []
        self.events: queue.Queue[Event]

    def start(self, spec: Spec, events: "queue.Queue[Event]") -> int:
        self.events = events
        self.started.append(len(self.started) + 1)
        return self.started[-1]

    def send(self, subject: int, message: dict) -> None:
        pass

    def kill(self, subject: int) -> None:
        self.killed.append(subject)
        self.events.put(Event(subject, "exit", {"status": None, "signal": 9, "tail": ""}))


def _hold_one(dialogues: Dialogues, subject: int, wanted: type[messages.Said], timeout_s: float = DEADLINE_S) -> list:
    """Wait for one message of a subject, and return it, or else the failure."""
    outcome: list = []

    def dialogue():
        try:
            outcome.append((yield from dialogues.until(subject, wanted, timeout_s)))
        except SubjectFailed as failure:
            outcome.append(failure)

    dialogues.hold([dialogue()])
    return outcome


def test_a_process_that_dies_while_nobody_waits_for_it_is_reported_when_somebody_does():
    launcher = _Scripted()
    dialogues = Dialogues(launcher)
    first, second = dialogues.start(Spec(role="timing")), dialogues.start(Spec(role="timing"))
    launcher.events.put(Event(second, "exit", {"status": None, "signal": 9, "tail": ""}))
    launcher.events.put(Event(first, "message", {"event": "first_call", "seconds": 1.0}))
    assert _hold_one(dialogues, first, messages.FirstCall) == [messages.FirstCall(seconds=1.0)]
    (failure,) = _hold_one(dialogues, second, messages.FirstCall)
    assert (failure.outcome, failure.error.type) == ("failed", "SIGKILL")


def test_silence_is_a_timeout_and_the_process_is_killed():
    launcher = _Scripted()
    dialogues = Dialogues(launcher)
    subject = dialogues.start(Spec(role="timing"))
    (failure,) = _hold_one(dialogues, subject, messages.Ready, timeout_s=0.0)
    assert (failure.outcome, failure.error.type, launcher.killed) == ("timeout", "Timeout", [subject])


@pytest.mark.parametrize("line", [{}, {"event": "first_call", "seconds": "soon"}, {"event": ["first_call"]}])
def test_what_is_no_message_fails_its_strategy_and_ends_the_process(line: dict):
    launcher = _Scripted()
    dialogues = Dialogues(launcher)
    subject = dialogues.start(Spec(role="timing"))
    launcher.events.put(Event(subject, "message", line))
    (failure,) = _hold_one(dialogues, subject, messages.FirstCall)
    assert (failure.outcome, failure.error.type, launcher.killed) == ("failed", "ProtocolError", [subject])
    assert "wrote into the channel" in failure.error.message and "not a message" in failure.error.detail


def test_the_loss_of_the_host_ends_all_dialogues_and_leaves_nobody_to_wait_for():
    launcher = _Scripted()
    dialogues = Dialogues(launcher)
    subject = dialogues.start(Spec(role="timing"))
    launcher.events.put(Event(subject, "lost", {}))
    with pytest.raises(HostLost):
        _hold_one(dialogues, subject, messages.Ready)
    dialogues.end()
    assert launcher.killed == []


def test_dialogues_that_need_more_memory_than_there_is_are_not_held_together():
    launcher = _Scripted()
    dialogues = Dialogues(launcher)
    most = 0

    def dialogue():
        nonlocal most
        subject = dialogues.start(Spec(role="memory"))
        launcher.events.put(Event(subject, "message", {"event": "saved"}))
        most = max(most, len(launcher.started) - finished)
        yield from dialogues.until(subject, messages.Saved, DEADLINE_S)
        done()

    finished = 0

    def done() -> None:
        nonlocal finished
        finished += 1

    dialogues.hold([dialogue() for _ in range(4)], at_once=2, costs=[60, 60, 30, 30], room=100)
    assert (finished, most) == (4, 2)
    finished = most = 0
    launcher.started.clear()
    dialogues.hold([dialogue() for _ in range(3)], at_once=2, costs=[60, 60, 200], room=100)
    assert (finished, most) == (3, 1), "one that does not fit at all is still held, by itself"


# --- the host --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostLauncher]:
    """A host as users have it: an interpreter of its own, with nothing below its code."""
    with running_host(tmp_path_factory.mktemp("host")) as launcher:
        yield launcher


def host_pid(launcher: HostLauncher) -> int:
    assert launcher.pid is not None
    return launcher.pid


def test_the_host_knows_the_devices(host: HostLauncher):
    state = host.state()
    assert (state.state, state.message) == ("ready", "ready to measure")
    assert "CPU:0" in state.devices


def test_a_subject_says_what_it_does_and_ends_when_it_is_told_to(host: HostLauncher):
    (one,) = talk(host, [timing("plain")])
    assert one.said == ["ready", "first_call", "sampled"]
    assert one.exit is not None and (one.exit["kind"], one.exit["status"], one.exit["signal"]) == ("exit", 0, None)


def test_a_subject_samples_calls_in_a_row_until_it_says_that_there_are_no_more(host: HostLauncher):
    (one,) = talk(host, [timing("waits", "import time\ntime.sleep(0.001)")])
    sampled = [messages.read(message) for message in one.messages if message["event"] == "sampled"]
    assert [said.last for said in sampled] == [False] * (len(sampled) - 1) + [True]
    seconds = [sample_s for said in sampled for sample_s in said.seconds]
    assert len(seconds) >= 3 and min(seconds) >= 0.001, "seconds of one call"


def assert_little_lies_below_a_call(launcher: Launcher) -> None:
    """TensorFlow records the Python stack with each eager op: the deeper it is, the slower small ops are."""
    (one,) = talk(launcher, [timing("tells its frames", TELL_FRAMES)])
    assert one.messages[-1]["event"] == "error"
    names = one.messages[-1]["message"].split()
    assert names[0] == "strategy" and names[-1] == "<module>" and len(names) <= MOST_FRAMES, names


def test_nothing_of_the_host_lies_below_a_call(host: HostLauncher):
    assert_little_lies_below_a_call(host)


def test_the_host_itself_has_run_no_op_and_started_no_device(host: HostLauncher):
    talk(host, [timing("one before")])
    files = {Path(entry.path).name for entry in psutil.Process(host_pid(host)).memory_maps()}
    assert any("tensorflow" in name for name in files)
    names = {
        (Path(f"/proc/{host_pid(host)}/task") / task / "comm").read_text().strip()
        for task in os.listdir(f"/proc/{host_pid(host)}/task")
    }
    assert not {name for name in names if name.startswith(("tf_", "Eigen", "xla"))}


def test_nothing_of_a_subject_is_left_when_it_has_ended(host: HostLauncher, tmp_path: Path):
    for name, end in [("ends", "pass"), ("exits", "os._exit(1)"), ("is killed", "os.kill(os.getpid(), 9)")]:
        path = tmp_path / name
        leave = LEAVE_A_PROCESS.format(path=str(path)) + WAIT_UNTIL_LEFT.format(path=str(path))
        once = f"if not hasattr(tf, 'forked'):\n    tf.forked = True\n{textwrap.indent(leave, '    ')}"
        body = f"{once}\nimport os\n{end}"
        (one,) = talk(host, [timing(name, body)])
        assert one.exit is not None
        eventually(lambda path=path: not left_behind(path), f"what a subject that {name} left behind is gone")
    eventually(lambda: not descendants(host_pid(host)), "the host has no descendants")


def test_a_subject_that_is_killed_takes_its_children_along(host: HostLauncher, tmp_path: Path):
    path = tmp_path / "pids"
    body = f"""
    import os
    if os.fork() == 0:
        with open({str(path)!r}, "a") as file:
            file.write(f"{{os.getpid()}}\\n")
    while True:
        pass
    """
    events: queue.Queue[Event] = queue.Queue()
    subject = host.start(timing("forks and hangs", body), events)
    kinds = []
    while "ready" not in kinds:
        kinds.append(events.get(timeout=DEADLINE_S).fields.get("event"))
    host.send(subject, {"op": "first_call"})
    eventually(lambda: path.exists() and left_behind(path), "the subject has forked")
    host.kill(subject)
    assert events.get(timeout=DEADLINE_S).fields["signal"] == signal.SIGKILL
    eventually(lambda: not left_behind(path), "the fork of a killed subject is gone")


def test_a_fork_that_a_strategy_makes_does_not_speak_for_its_subject(host: HostLauncher):
    body = "import os\nif not hasattr(tf, 'forked'):\n    tf.forked = True\n    os.fork()"
    (one,) = talk(host, [timing("forks", body)])
    assert one.said == ["ready", "first_call", "sampled"]
    assert one.exit is not None and one.exit["status"] == 0


def test_of_a_flood_of_output_the_end_is_kept(host: HostLauncher):
    body = "import os\nos.write(1, b'o' * 2**24)\nos.write(2, b'the last words')\nos._exit(4)"
    (one,) = talk(host, [timing("floods", body)])
    assert one.exit is not None and one.exit["status"] == 4
    assert one.exit["tail"].endswith("the last words") and len(one.exit["tail"]) <= 8_192


def test_subjects_inherit_nothing_but_their_own_channel(host: HostLauncher):
    body = "import os\nprint(sorted(map(int, os.listdir('/proc/self/fd'))))\nos._exit(0)"
    for _ in range(2):
        one, other = talk(host, [timing("a", body), timing("b", body)], at_once=2)
        for talked in (one, other):
            assert talked.exit is not None
            fds = eval(talked.exit["tail"].strip().splitlines()[-1])
            assert fds[:4] == [0, 1, 2, 3]
            listed = [fd for fd in fds if fd > 3]
            assert len(listed) <= 1 + 4, "the listing's own, and those that TensorFlow opens"


def test_where_memory_runs_out_a_subject_goes_first_and_the_server_last(host: HostLauncher):
    (one,) = talk(host, [timing("tells", "import os\nprint(open('/proc/self/oom_score_adj').read())\nos._exit(0)")])
    assert one.exit is not None and one.exit["tail"].split()[-1] == "1000"
    score, ours = (int(Path(f"/proc/{of}/oom_score_adj").read_text()) for of in (host_pid(host), "self"))
    assert score == max(500, ours), "it inherits the server's, which is lower unless somebody has set it"


def test_a_host_that_was_killed_is_started_again_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(host_launcher, "subprocess", WARM)
    with running_host(tmp_path, warm=True) as launcher:
        events: queue.Queue[Event] = queue.Queue()
        subject = launcher.start(timing("waits"), events)
        while events.get(timeout=DEADLINE_S).fields.get("event") != "ready":
            pass
        pids = [host_pid(launcher), *descendants(host_pid(launcher))]
        os.kill(pids[0], signal.SIGKILL)
        assert events.get(timeout=DEADLINE_S) == Event(subject, "lost", {})
        eventually(lambda: launcher.state().state == "restarting", "the launcher says that the host is started again")
        assert "signal 9" in launcher.state().message
        eventually(lambda: not [pid for pid in pids if is_alive(pid)], "the subjects died with their host")
        assert launcher.wait_ready(DEADLINE_S, lambda: False)
        (one,) = talk(launcher, [timing("after it")])
        assert one.exit is not None and one.exit["status"] == 0


def test_a_subject_asked_for_while_there_is_no_host_is_lost_at_once(tmp_path: Path):
    with running_host(tmp_path, warm=True) as launcher:
        launcher.close()
        (one,) = talk(launcher, [timing("too late")])
        assert one.exit == {"kind": "lost"}


def test_closing_a_launcher_ends_its_host_with_all_subjects(tmp_path: Path):
    with running_host(tmp_path, warm=True) as launcher:
        events: queue.Queue[Event] = queue.Queue()
        for name in "ab":
            launcher.start(timing(name), events)
        eventually(lambda: len(descendants(host_pid(launcher))) == 2, "both subjects live")
        pids = [host_pid(launcher), *descendants(host_pid(launcher))]
        launcher.close()
        eventually(lambda: not [pid for pid in pids if is_alive(pid)], "all of them are gone")


# --- the server is killed --------------------------------------------------------------------------------------------


def _interpreter(*arguments: str, **more: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "measure", *arguments], **more)


def _server(start: Callable[..., Any], tmp_path: Path, *arguments: str, **more: str) -> subprocess.Popen[bytes]:
    return start(
        *arguments,
        cwd=ROOT,
        env=environment(MAPBENCH_HOME=str(tmp_path / "home"), MAPBENCH_LOCK=str(tmp_path / "lock"), **more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _kill_and_watch(server: subprocess.Popen[bytes], known: list[int]) -> None:
    pids = {*known, *descendants(server.pid)}
    server.kill()
    server.wait()
    eventually(
        lambda: not [pid for pid in pids if is_alive(pid)],
        f"all {len(pids)} processes of a killed server are gone",
        GONE_WITHIN_S,
    )


@pytest.mark.parametrize("start", ["fork", "fresh"])
def test_nothing_is_left_when_the_server_is_killed_while_strategies_hang(tmp_path: Path, start: str):
    path = tmp_path / "pids"
    mappers = tmp_path / "mappers"
    mappers.mkdir()
    note = f"import os\nwith open({str(path)!r}, 'a') as file:\n    file.write(f'{{os.getpid()}}\\n')\n"
    write_mapper(mappers, "in_native_code", note + "import ctypes\nctypes.PyDLL(None).pause()")
    write_mapper(mappers, "in_python", note + "while True:\n    pass")
    left = tmp_path / "left"
    if start == "fork":  # in a fresh interpreter's place there is nobody who could find what a strategy left behind
        leave = LEAVE_A_PROCESS.format(path=str(left))
        write_mapper(mappers, "in_python", leave + note + "while True:\n    pass")
    server = _server(
        forked.start, tmp_path, "compare", "outer_product", "--size", "batch=2", "--size", "side=2",
        "--strategies", "in_native_code,in_python", MAPBENCH_MAPPERS=str(mappers), MAPBENCH_START=start,
    )  # fmt: skip
    try:
        eventually(lambda: path.exists() and len(path.read_text().split()) >= 2, "both strategies hang")
        if start == "fork":
            eventually(lambda: len(left_behind(left)) >= 2, "processes are left behind")
        _kill_and_watch(server, left_behind(left))
    finally:
        server.kill()


def _host_of(server: subprocess.Popen[bytes]) -> int | None:
    for pid in descendants(server.pid):
        try:
            if "measure.engine.host" in " ".join(psutil.Process(pid).cmdline()):
                return pid
        except psutil.Error:
            continue
    return None


def _maps(pid: int, library: str) -> bool:
    try:
        return library in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


@pytest.mark.parametrize("moment", ["it starts", "it imports NumPy", "it imports TensorFlow"])
def test_nothing_is_left_when_the_server_is_killed_while_its_host_is_starting(tmp_path: Path, moment: str):
    server = _server(_interpreter, tmp_path, "list")
    try:
        host = eventually(lambda: _host_of(server), "the host has been started")
        library = {"it starts": "", "it imports NumPy": "numpy", "it imports TensorFlow": "tensorflow"}[moment]
        eventually(lambda: _maps(host, library), moment)
        _kill_and_watch(server, [host])
    finally:
        server.kill()


def test_a_host_is_in_its_servers_session_where_priorities_count_and_no_key_of_a_terminal_reaches_it(tmp_path: Path):
    server = _server(_interpreter, tmp_path, "list")
    try:
        host = eventually(lambda: _host_of(server), "the host has been started")
        assert (os.getsid(host), os.getpgid(host)) == (os.getsid(server.pid), host)
    finally:
        _kill_and_watch(server, [])


# --- fresh interpreters ----------------------------------------------------------------------------------------------


@pytest.fixture
def fresh() -> Iterator[FreshLauncher]:
    """Fresh interpreters that have imported TensorFlow already."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fresh_launcher, "subprocess", WARM)
        launcher = FreshLauncher()
        assert launcher.wait_ready(DEADLINE_S, lambda: False)
        yield launcher
        launcher.close()


def test_fresh_interpreters_say_and_do_the_same(fresh: FreshLauncher):
    assert "CPU:0" in fresh.state().devices
    plain, exits, garbage = talk(
        fresh,
        [
            timing("plain"),
            timing("exits", "import os\nos.write(2, b'the last words')\nos._exit(4)"),
            timing("garbage", "import os\nfor fd in range(3, 20):\n    try:\n        os.write(fd, b'no message\\n')\n"
                              "    except OSError:\n        pass\nwhile True:\n    pass"),
        ],
        at_once=2,
    )  # fmt: skip
    assert plain.said == ["ready", "first_call", "sampled"]
    assert plain.exit is not None and plain.exit["status"] == 0
    assert exits.exit is not None and exits.exit["status"] == 4 and exits.exit["tail"].endswith("the last words")
    assert garbage.messages[-1]["type"] == "ProtocolError" and garbage.exit is not None
    assert garbage.exit["signal"] == signal.SIGKILL


def test_little_lies_below_a_call_in_a_fresh_interpreter():
    assert_little_lies_below_a_call(FreshLauncher(finds_devices=False))


def test_what_a_fresh_interpreter_leaves_behind_ends_with_it(tmp_path: Path):
    fresh = FreshLauncher(finds_devices=False)
    path = tmp_path / "pids"
    leave = LEAVE_A_PROCESS.format(path=str(path))
    wait = WAIT_UNTIL_LEFT.format(path=str(path))
    (one,) = talk(fresh, [timing("forks and exits", f"{leave}{wait}os._exit(6)")])
    assert one.exit is not None and one.exit["status"] == 6
    eventually(lambda: not left_behind(path), "what it left behind is gone")
