"""The host, its subjects and their lines: what comes in and goes out, and that nothing outlives whom it belongs to."""

import os
import signal
import textwrap
from collections import deque
from pathlib import Path

import pytest

from measure.pool import launcher as module
from measure.pool.dialogue import Dialogues, SubjectFailed, ended
from measure.pool.launcher import Event, Events, Launcher
from measure.pool.process import environment
from measure.subject import messages
from measure.subject.messages import Spec
from tests.deadlines import ANSWER_S, GONE_S, RUN_S
from tests.engine import descendants, eventually, is_alive, running_host, talk
from tests.subjects import Subjects, measured

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


def timing(name: str, body: str = "pass") -> Spec:
    body = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ").lstrip()
    return Spec(role="timing", name=name, script=SCRIPT.format(body=body))


def test_the_end_of_a_process_becomes_an_outcome_and_keeps_its_last_words():
    no_room = "Allocator ran out of memory trying to allocate 32.00MiB\n***_"
    for fields, outcome, type_ in (
        ({"status": 3, "tail": ""}, "failed", "Exit"),
        ({"status": -6, "tail": "free(): invalid size\n"}, "failed", "SIGABRT"),
        ({"status": -9, "for_memory": False, "tail": ""}, "failed", "SIGKILL"),
        ({"status": -9, "for_memory": True, "tail": ""}, "out_of_memory", "SIGKILL"),
        ({"status": -11, "for_memory": True, "tail": ""}, "failed", "SIGSEGV"),
        ({"status": -6, "tail": "std::bad_alloc"}, "out_of_memory", "bad_alloc"),
        ({"status": -11, "tail": no_room}, "out_of_memory", "ResourceExhausted"),
        ({"status": -99, "tail": ""}, "failed", "signal 99"),
    ):
        failure = ended(fields)
        assert (failure.outcome, failure.error.type, failure.error.detail) == (outcome, type_, fields["tail"])


# As TensorFlow prints it, shortened.
NOISE = """WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
I0000 00:00:17.0 1 port.cc:153] oneDNN custom operations are on.
I0000 00:00:17.0 1 cudart_stub.cc:31] Could not find cuda drivers on your machine
I0000 00:00:17.0 1 cpu_feature_guard.cc:227] This TensorFlow binary is optimized to use
To enable the following instructions: AVX2 FMA, in other operations
2026-01-01 12:00:00.1: E external/cuda_dnn.cc:8310] Unable to register cuDNN factory
W0000 00:00:17.0 1 computation_placer.cc:177] computation placer already registered.
E0000 00:00:17.0 1 cuda_platform.cc:52] failed call to cuInit: INTERNAL
"""
CHECK = "F0000 00:00:17.0 1 tensor.cc:896] Check failed: x\n*** Check failure stack trace: ***\n    @  (unknown)\n"


def test_a_crash_names_the_step_and_onednn_where_it_was_on_but_no_noise():
    for tail, onednn, words in (
        ("", None, ""),
        ("free(): invalid size\n", False, ": free(): invalid size"),
        ("", True, ". oneDNN may be the cause: start Mapbench with TF_ENABLE_ONEDNN_OPTS=0"),
        (CHECK, True, "Check failed: x. oneDNN may"),
    ):
        error = ended({"status": -11, "tail": NOISE + tail, "onednn": onednn}, "making its first call").error
        assert error.message.startswith("TensorFlow crashed (SIGSEGV) while making its first call")
        assert words in error.message and ("oneDNN" in error.message) == bool(onednn) and error.detail == tail
    steps = Dialogues(Subjects()).until(1, messages.Anew, lambda: 1.0)
    next(steps)
    steps.send(Event(1, "message", measured()[0]))
    with pytest.raises(SubjectFailed) as caught:
        steps.send(Event(1, "exit", {"status": -11}))
    assert caught.value.error.message == "TensorFlow crashed (SIGSEGV) while its memory was measured"


def test_logs_tell_of_a_native_crash_for_want_of_memory_at_any_level(monkeypatch: pytest.MonkeyPatch):
    """At level 3 nothing is said, and at 0 a dump pushes it out of what is kept."""
    for level in "03":
        monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", level)
        assert environment()["TF_CPP_MIN_LOG_LEVEL"] == "1"


def test_a_host_stays_fit_for_forks_and_little_lies_below_a_call(host: Launcher):
    assert "CPU:0" in host.state().devices
    # TensorFlow records the Python stack with each eager op: the deeper it is, the slower small ops are.
    *_, last = talk(host, timing("tells its frames", TELL_FRAMES))[0]
    assert last["event"] == "error"
    names = last["message"].split()
    assert names[0] == "strategy" and names[-1] == "<module>" and len(names) <= MOST_FRAMES, names
    pid = family(host)[0]
    threads = {path.read_text().strip() for path in Path(f"/proc/{pid}/task").glob("*/comm")}
    assert not {name for name in threads if name.startswith(("tf_", "Eigen", "xla"))}, "it has run no op"
    assert os.getpgid(pid) == pid, "no key of a terminal reaches it"
    score, ours = (int(Path(f"/proc/{of}/oom_score_adj").read_text()) for of in (pid, "self"))
    assert score == max(500, ours), "it inherits the server's, which is lower unless somebody has set it"


def test_what_subjects_inherit_and_what_is_kept_of_their_output(host: Launcher):
    files = "import os\nprint(os.listdir('/proc/self/fd'), flush=True)\nos._exit(0)"
    flood = "import os\nos.write(1, b'o' * 2**24)\nos.write(2, b'the last words')\nos._exit(4)"
    score = "import os\nprint(open('/proc/self/oom_score_adj').read(), flush=True)\nos._exit(0)"
    ends = {code: talk(host, timing("said", code))[1] for code in (files, flood, score)}
    fds = ends[files]["tail"].splitlines()[-1].split()
    assert len(fds) <= 4 + 1 + 4, "three streams and the channel, the listing's own, and those that TensorFlow opens"
    assert ends[flood]["status"] == 4
    assert ends[flood]["tail"].endswith("the last words") and len(ends[flood]["tail"]) <= 8_192
    assert ends[score]["tail"].split()[-1] == "1000", "where memory runs out it goes first"


def family(launcher: Launcher) -> list[int]:
    """The host and all below it."""
    assert launcher._host is not None
    return [launcher._host.pid, *descendants(launcher._host.pid)]


@pytest.mark.usefixtures("live")
def test_a_host_that_is_killed_or_stands_still_takes_its_subjects_along_and_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "SILENT_S", 1.0)
    with running_host() as launcher:
        for restarts, by in enumerate((signal.SIGKILL, signal.SIGSTOP)):
            assert launcher.wait_ready(RUN_S, lambda: False) and launcher.state().restarts == restarts
            events: Events = deque()
            hangs = tmp_path / by.name
            subject = launcher.start(timing("hangs", f"open({str(hangs)!r}, 'w')\nwhile True:\n    pass"), events)
            while b'"ready"' not in launcher.next(events, RUN_S).fields:
                pass
            launcher.send(subject, {"op": "first_call"})
            eventually(hangs.exists, "it hangs")
            pids = family(launcher)
            os.kill(pids[0], by)
            late = launcher.start(timing("late"), others := deque())  # of one that stands still, an answer that it owes
            for number, its_events in ((late, others), (subject, events)):
                lost = launcher.next(its_events, ANSWER_S)
                assert lost and (lost.subject, lost.kind, lost.fields["status"]) == (number, "exit", None)
            eventually(lambda pids=pids: not any(map(is_alive, pids)), "the subjects died with their host", GONE_S)
        launcher.state()  # which starts the next one
        pids = family(launcher)
        launcher.close()
        eventually(lambda: not any(map(is_alive, pids)), "a closed launcher leaves nothing", GONE_S)
        assert talk(launcher, timing("too late")) == ([], {"status": None})


@pytest.mark.usefixtures("live")
def test_fresh_interpreters_say_and_do_the_same(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MAPBENCH_SAID", "the last words")
    fresh = Launcher("fresh")
    once = "if not hasattr(tf, 'forked'):\n    tf.forked = True\n    os.fork()"
    try:
        assert fresh.wait_ready(RUN_S, lambda: False) and "CPU:0" in fresh.state().devices
        said, end = talk(
            fresh, timing("plain", f"import os\n{once}\nos.write(2, os.environ['MAPBENCH_SAID'].encode())")
        )
    finally:
        fresh.close()
    assert [one["event"] for one in said] == ["ready", "first_call", "sampled"], "its fork does not speak for it"
    assert end["status"] == 0 and end["tail"].endswith("the last words")
