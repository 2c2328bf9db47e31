"""Inside a subject: scripts run as users would run them, and errors are told in a line that helps."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from measure.subject import messages
from measure.subject.errors import describe, shorten
from tests import warm

_LOAD = """
import logging, sys
import workloads
from measure.subject.roles import load
from strategies import script
from workloads.case import Case

said = []
handler = logging.Handler()
handler.emit = lambda record: said.append(record.getMessage())
logging.getLogger("tensorflow").addHandler(handler)
size = {"batch": 3, "side": 4}
for slug in ("loop.graph", "map_fn.graph", "vectorized_map.graph", "batched.graph"):
    text = script.build(Case(workloads.get("outer_product"), size, "float32"), slug)
    # What tells whether AutoGraph has converted a function: a branch on a tensor, which plain tracing refuses.
    branch = "    if tf.reduce_sum(x) > 1e9:\\n        x = -x\\n"
    text = text.replace("    return tf.tensordot(", branch + "    return tf.tensordot(")
    module = load(text, slug)
    try:
        module.strategy(module.elems)
        print(slug, "converted")
    except Exception as error:
        print(slug, type(error).__name__)
print("said", said)
"""


def test_autograph_finds_the_source_of_a_script_and_converts_it() -> None:
    done = warm.run(_LOAD, folder=Path(__file__).resolve().parents[3])
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    assert printed[:2] == ["loop.graph converted", "map_fn.graph converted"]
    # tf.vectorized_map does not convert the function that it maps.
    assert printed[2] != "vectorized_map.graph converted"
    assert printed[-1] == "said []"


_OTHER_VALUES = """
import sys, time
from measure.subject import subject
from measure.subject.messages import CallFirst, CallWithOtherValues, Spec

class Channel:
    commands = [CallFirst(), CallWithOtherValues()]

    def send(self, message): pass
    def receive(self, kind): return self.commands.pop(0) if self.commands else None

script = '''
import time
import numpy as np
elems = np.arange(8.0)

def strategy(elems):
    print(int(elems[0]))
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        pass
'''
subject.serve(Spec(role="timing", script=script.replace("SECONDS", sys.argv[1]), name="loop.eager"), Channel())
"""


@pytest.mark.parametrize(("call_s", "first_elements"), [("0.0", [0, 1]), ("0.005", [0, 1, 0, 2, 0, 3, 0])])
def test_a_call_with_other_values_is_repeated_only_where_it_may_have_traced_or_compiled(
    call_s: str, first_elements: list[int]
) -> None:
    """The script prints its first element in each call: those with another order take turns with the timed one."""
    done = warm.run(_OTHER_VALUES, call_s, folder=Path(__file__).resolve().parents[3])
    assert [int(line) for line in done.stdout.split()] == first_elements, done.stderr


_START = """
import os, sys
import tensorflow as tf
from tensorflow.python.eager import context
from measure.subject.roles import start_runtime

for mode, slug in (
    ("eager", "loop.eager"), ("graph", "batched.graph"), ("xla", "batched.xla"),
    ("eager", "loop_compiled.eager?jit_compile=true"), ("graph", "dataset.graph?jit_compile=true"),
):
    sys.stderr.flush()
    if not (child := os.fork()):
        seconds = start_runtime(mode, slug)
        initialised = context.context()._context_handle is not None
        os.write(2, f"\\nstarted {slug} {initialised} {seconds > 0}\\n".encode())
        # What a strategy's first call would do.
        tf.function(lambda x: x * 2.0, jit_compile=True)(tf.constant(3.0))
        os.write(2, b"\\nended\\n")
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_what_tensorflow_and_xla_start_once_per_process_has_started_before_the_first_call() -> None:
    said = subprocess.run(
        [sys.executable, "-c", _START],
        cwd=Path(__file__).resolve().parents[3],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0"},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    ).stderr
    # XLA says once in a process that it has compiled something: LLVM is loaded and started by then.
    compiled = "Compiled cluster using XLA!"
    before = {}
    for part in said.split("\nended\n")[:-1]:
        start, _, rest = part.partition("\nstarted ")
        slug, initialised, timed = rest.splitlines()[0].split()
        before[slug] = compiled in start
        assert part.count(compiled) == 1 and initialised == timed == "True"
    assert before == {
        "loop.eager": False,
        "batched.graph": False,
        "batched.xla": True,
        "loop_compiled.eager?jit_compile=true": True,
        "dataset.graph?jit_compile=true": True,
    }


_IN_USER_CODE = (
    'in user code:\n\n    File "<x>", line 3, in element  *\n        y = x[0]\n\n    ValueError: slice index 0\n'
)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{{function_node __wrapped__Foo}} Bad shapes: [2] vs. [3] [Op:AddV2] name: ", "Bad shapes: [2] vs. [3]"),
        (_IN_USER_CODE, "ValueError: slice index 0"),
        ("Graph execution error:\n\nDetected at node x\nout of range", "out of range"),
        ("Graph execution error:\n\n    Detected at node x", "Detected at node x"),
        ("", ""),
        (
            "Using a symbolic `tf.Tensor` as a Python `bool` is not allowed. You can attempt the following: …",
            "the function decides in Python (if, while, and, or, not) by a tensor, which has no value while it is "
            "traced, and nothing converts that here: write tf.where, or tf.cond for whole branches, or take a strategy "
            "that calls the function for one element after the other, such as tf.map_fn",
        ),
        (
            "in user code:\n\n    SomeError: Iterating over a symbolic `tf.Tensor` is not allowed. You can attempt …",
            "the function loops in Python over a tensor, which has no value while it is traced, and nothing converts "
            "that here: write one op on the whole axis, tf.unstack or tf.while_loop, or take a strategy that calls the "
            "function for one element after the other, such as tf.map_fn",
        ),
        *(
            (
                text,
                "the function takes a tensor for a value of Python or NumPy, which has no value while it is traced: "
                "write TensorFlow's ops or tf.numpy_function, or take a strategy that calls the function for one "
                "element after the other, such as loop.eager",
            )
            for text in (
                "Cannot convert a symbolic tf.Tensor (loop_body/GatherV2:0) to a numpy array. This error may …",
                "'SymbolicTensor' object has no attribute 'numpy'",
                "'SymbolicTensor' object cannot be interpreted as an integer",
                "float() argument must be a string or a real number, not 'SymbolicTensor'",
            )
        ),
    ],
)
def test_of_a_long_message_the_line_that_helps_is_kept(text: str, line: str) -> None:
    assert shorten(text) == line


def test_running_out_of_memory_is_told_from_other_errors() -> None:
    assert describe(MemoryError("no")).outcome == "out_of_memory"
    assert describe(ValueError("RESOURCE_EXHAUSTED: Out of memory")).outcome == "out_of_memory"
    assert describe(ValueError("wrong")).outcome == "failed"


@pytest.mark.parametrize(
    "message",
    [
        messages.Sampled(calls=3, seconds=[0.1, 0.2], disturbed=[1], last=True),
        messages.OtherValues(None),
        messages.Failed("timeout", "Timeout", "no answer", "…"),
        messages.Saved(),
    ],
)
def test_what_a_subject_says_is_what_is_read(message: messages.Said) -> None:
    (line,) = messages.Lines().feed(messages.encode(message))
    assert messages.read(line) == message
    assert messages.tells_of_failure(line) == isinstance(message, messages.Failed)


@pytest.mark.parametrize(
    "line",
    [
        {"event": "sampled", "calls": 1, "seconds": "soon", "disturbed": [], "last": True},
        {"event": "sampled", "calls": 1, "seconds": [0.1]},
        {"event": "error", "outcome": "splendid", "type": "", "message": "", "detail": ""},
        {"event": "unknown"},
        {"event": ["sampled"]},
        {},
    ],
)
def test_what_is_no_message_is_not_taken_in(line: dict) -> None:
    with pytest.raises(messages.ProtocolError, match="not a message"):
        messages.read(line)
