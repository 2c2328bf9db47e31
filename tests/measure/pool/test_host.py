"""The host, its subjects and their lines: what comes in and goes out, and that nothing outlives whom it belongs to."""

import json
import os
import queue
import signal
import textwrap
from pathlib import Path

import pytest

from measure.engine.bench import Settings
from measure.pool import host_launcher, process
from measure.pool.dialogue import ended
from measure.pool.fresh_launcher import FreshLauncher
from measure.pool.host_launcher import HostLauncher
from measure.pool.launcher import Event
from measure.subject import messages
from measure.subject.messages import Lines, ProtocolError, Spec, encode
from tests.deadlines import ANSWER_S, GONE_S, RUN_S
from tests.engine import (
    LEAVE_A_PROCESS,
    WAIT_UNTIL_LEFT,
    descendants,
    eventually,
    is_alive,
    left_behind,
    running_host,
    small_request,
    talk,
)
from tests.grid import untimed
from tests.warm import WARM

SCRIPT = """
import tensorflow as tf

elems = tf.ones([4, 4])


def strategy(elems):
    {body}
    return elems + 1.0
"""


# The strategy, and below it: calls in a row, one call, the role, the subject, `main`, the command, the nursery.
MOST_FRAMES = 8
TELL_FRAMES = """
import sys
frame, names = sys._getframe(), []
while frame:
    names.append(frame.f_code.co_name)
    frame = frame.f_back
raise RuntimeError(" ".join(names))
"""


def timing(name: str, body: str = "pass") -> Spec:
    body = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ").lstrip()
    return Spec(role="timing", name=name, script=SCRIPT.format(body=body))


# --- lines -----------------------------------------------------------------------------------------------------------


def test_messages_survive_any_cutting_of_the_stream():
    messages = [{"event": "first_call", "seconds": 1.5}, {"text": "zwölf\nlines"}, {"n": list(range(50))}]
    stream = b"".join(map(encode, messages))
    for step in (1, 2, 7, 64, len(stream)):
        decoder, received = Lines(), []
        for start in range(0, len(stream), step):
            received += decoder.feed(stream[start : start + step])
        assert [json.loads(line) for line in received] == messages
    (line,) = Lines().feed(encode({"seconds": float("inf"), "ratio": float("nan")}))
    assert json.loads(line) == {"seconds": None, "ratio": None}


def test_what_is_not_a_message_is_refused():
    for line in (b"no json", b"[1]", b'"text"', b"\xff\xfe", b'{"a": 1', b"", b'{"event": "first_call"}'):
        with pytest.raises(ProtocolError, match="not a message"):
            messages.read(line)
    lines = Lines(longest=1000)
    assert lines.feed(b"x" * 1000) == []
    with pytest.raises(ProtocolError, match="longer than 1000 bytes"):
        lines.feed(b"x")


# --- what the end of a process means ---------------------------------------------------------------------------------


def test_the_end_of_a_process_becomes_an_outcome_and_keeps_its_last_words():
    no_room = "Allocator ran out of memory trying to allocate 32.00MiB\n***_"
    for fields, outcome, type_ in (
        ({"status": 3, "signal": None, "tail": ""}, "failed", "Exit"),
        ({"status": None, "signal": 6, "tail": "free(): invalid size\n"}, "failed", "SIGABRT"),
        ({"status": None, "signal": 9, "for_memory": False, "tail": ""}, "failed", "SIGKILL"),
        ({"status": None, "signal": 9, "for_memory": True, "tail": ""}, "out_of_memory", "SIGKILL"),
        ({"status": None, "signal": 11, "for_memory": True, "tail": ""}, "failed", "SIGSEGV"),
        ({"status": None, "signal": 6, "tail": "std::bad_alloc"}, "out_of_memory", "bad_alloc"),
        ({"status": None, "signal": 11, "tail": no_room}, "out_of_memory", "ResourceExhausted"),
        ({"status": None, "signal": 99, "tail": ""}, "failed", "signal 99"),
    ):
        failure = ended(fields)
        assert (failure.outcome, failure.error.type, failure.error.detail) == (outcome, type_, fields["tail"])
    logged = "2026-01-01 12:00:00.123456: E external/local_xla/cuda_platform.cc:51] failed call to cuInit: UNKNOWN"
    failure = ended({"status": None, "signal": signal.SIGSEGV, "tail": f"free(): invalid size\n{logged}\n"})
    assert failure.error.message.endswith(": free(): invalid size"), "and no line of TensorFlow's log"


# --- the host --------------------------------------------------------------------------------------------------------


def until_ready(launcher: HostLauncher, events: "queue.Queue[Event]") -> None:
    """Wait until a subject can be told to call its strategy."""
    while (event := launcher.next(events, RUN_S)) is not None:
        if event.kind == "message" and b'"ready"' in event.fields:
            return
    pytest.fail("it does not become ready")


def test_a_host_stays_fit_for_forks_and_little_lies_below_a_call(host: HostLauncher):
    assert "CPU:0" in host.state().devices
    # TensorFlow records the Python stack with each eager op: the deeper it is, the slower small ops are.
    (one,) = talk(host, [timing("tells its frames", TELL_FRAMES)])
    assert one.messages[-1]["event"] == "error"
    names = one.messages[-1]["message"].split()
    assert names[0] == "strategy" and names[-1] == "<module>" and len(names) <= MOST_FRAMES, names
    pid = family(host)[0]
    threads = {path.read_text().strip() for path in Path(f"/proc/{pid}/task").glob("*/comm")}
    assert not {name for name in threads if name.startswith(("tf_", "Eigen", "xla"))}, "it has run no op"
    assert os.getpgid(pid) == pid, "no key of a terminal reaches it"
    score, ours = (int(Path(f"/proc/{of}/oom_score_adj").read_text()) for of in (pid, "self"))
    assert score == max(500, ours), "it inherits the server's, which is lower unless somebody has set it"


def test_what_subjects_inherit_and_what_is_kept_of_their_output(host: HostLauncher):
    files = "import os\nprint(sorted(map(int, os.listdir('/proc/self/fd'))), flush=True)\nos._exit(0)"
    flood = "import os\nos.write(1, b'o' * 2**24)\nos.write(2, b'the last words')\nos._exit(4)"
    score = "import os\nprint(open('/proc/self/oom_score_adj').read(), flush=True)\nos._exit(0)"
    specs = [timing("files", files), timing("files too", files), timing("flood", flood), timing("score", score)]
    ends = {one.spec.name: one.exit for one in talk(host, specs, at_once=2)}
    for name in ("files", "files too"):
        fds = json.loads(next(line for line in ends[name]["tail"].splitlines() if line.startswith("[0")))
        assert fds[:4] == [0, 1, 2, 3]
        assert len([fd for fd in fds if fd > 3]) <= 1 + 4, "the listing's own, and those that TensorFlow opens"
    assert ends["flood"]["status"] == 4
    assert ends["flood"]["tail"].endswith("the last words") and len(ends["flood"]["tail"]) <= 8_192
    assert ends["score"]["tail"].split()[-1] == "1000", "where memory runs out it goes first"


def family(launcher: HostLauncher) -> list[int]:
    """The host and all below it."""
    assert launcher.pid is not None
    return [launcher.pid, *descendants(launcher.pid)]


# --- nothing is left -------------------------------------------------------------------------------------------------


def test_nothing_of_a_subject_is_left_when_it_has_ended_or_was_killed(host: HostLauncher, tmp_path: Path):
    for name, end in [("ends", "pass"), ("exits", "os._exit(1)"), ("hangs", "while True:\n    pass")]:
        path = tmp_path / name
        leave = LEAVE_A_PROCESS.format(path=str(path)) + WAIT_UNTIL_LEFT.format(path=str(path))
        once = f"if not hasattr(tf, 'forked'):\n    tf.forked = True\n{textwrap.indent(leave, '    ')}"
        spec = timing(name, f"{once}\nimport os\n{end}")
        if name == "hangs":
            events: queue.Queue[Event] = queue.Queue()
            subject = host.start(spec, events)
            until_ready(host, events)
            host.send(subject, {"op": "first_call"})
            eventually(lambda path=path: len(left_behind(path)) == 2, "processes are left behind")
            host.kill(subject)
            ended = host.next(events, ANSWER_S)
            assert ended is not None and ended.fields["signal"] == signal.SIGKILL
        else:
            (one,) = talk(host, [spec])
            assert one.exit is not None and len(path.read_text().split()) == 2
        eventually(lambda path=path: not left_behind(path), f"what a subject that {name} left behind is gone", GONE_S)
    eventually(lambda: len(family(host)) == 1, "the host has no descendants", GONE_S)


@pytest.mark.usefixtures("live")
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGSTOP])
def test_a_host_that_is_killed_or_stands_still_takes_its_subjects_along_and_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: signal.Signals
):
    monkeypatch.setattr(process, "subprocess", WARM)
    monkeypatch.setattr(host_launcher, "SILENT_S", 1.0)
    with running_host(tmp_path, warm=True) as launcher:
        events: queue.Queue[Event] = queue.Queue()
        hangs = tmp_path / "hangs"
        subject = launcher.start(timing("hangs", f"open({str(hangs)!r}, 'w')\nwhile True:\n    pass"), events)
        until_ready(launcher, events)
        launcher.send(subject, {"op": "first_call"})
        eventually(hangs.exists, "it hangs")
        pids = family(launcher)
        os.kill(pids[0], by)
        launcher.kill(subject)  # of one that stands still, this is an answer that it owes
        assert launcher.next(events, ANSWER_S) == Event(subject, "lost", {})
        eventually(lambda: not [pid for pid in pids if is_alive(pid)], "the subjects died with their host", GONE_S)
        assert launcher.wait_ready(RUN_S, lambda: False) and launcher.state().restarts == 1
        launcher.start(timing("after it"), events)
        until_ready(launcher, events)
        pids = family(launcher)
        launcher.close()
        eventually(lambda: not [pid for pid in pids if is_alive(pid)], "a closed launcher leaves nothing", GONE_S)
        (late,) = talk(launcher, [timing("too late")])
        assert late.exit == {"kind": "lost"}


# --- fresh interpreters ----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("live")
def test_fresh_interpreters_say_and_do_the_same(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(process, "subprocess", WARM)
    fresh = FreshLauncher({"MAPBENCH_SAID": "the last words"})
    try:
        assert fresh.wait_ready(RUN_S, lambda: False) and "CPU:0" in fresh.state().devices
        specs = [
            timing("plain", "if not hasattr(tf, 'forked'):\n    import os\n    tf.forked = True\n    os.fork()"),
            timing("exits", "import os\nos.write(2, os.environ['MAPBENCH_SAID'].encode())\nos._exit(4)"),
        ]
        plain, exits = talk(fresh, specs, at_once=2)
        run = untimed(small_request("batched.eager"), fresh, Settings(timeout_floor_s=RUN_S))
    finally:
        fresh.close()
    assert plain.said == ["ready", "first_call", "sampled"], "its fork does not speak for it"
    assert plain.exit is not None and plain.exit["status"] == 0
    assert exits.exit is not None and exits.exit["status"] == 4 and exits.exit["tail"].endswith("the last words")
    assert run.measurement("batched.eager").memory is not None
