"""Inside a subject: scripts run as users would run them, and errors are told in a line that helps."""

from typing import Any

import pytest

from measure.subject import messages, roles
from measure.subject.errors import describe, shorten


def test_what_xla_starts_once_per_process_is_started_before_the_first_call_of_what_it_compiles(
    tf: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[bool] = []

    def function(increment: Any, *, jit_compile: bool, autograph: bool) -> Any:
        compiled.append(jit_compile)
        return increment

    monkeypatch.setattr(tf, "function", function)
    for mode, slug, by_xla in (
        ("eager", "loop.eager", False),
        ("graph", "batched.graph", False),
        ("xla", "batched.xla", True),
        ("eager", "loop_compiled.eager?jit_compile=true", True),
        ("graph", "dataset.graph?jit_compile=true", True),
    ):
        assert roles.start_runtime(mode, slug) >= 0 and compiled.pop() == by_xla, slug


def test_of_a_long_message_the_line_that_helps_is_kept() -> None:
    in_user_code = (
        'in user code:\n\n    File "<x>", line 3, in element  *\n        y = x[0]\n\n    ValueError: slice index 0\n'
    )
    for text, line in (
        ("{{function_node __wrapped__Foo}} Bad shapes: [2] vs. [3] [Op:AddV2] name: ", "Bad shapes: [2] vs. [3]"),
        (in_user_code, "ValueError: slice index 0"),
        ("Graph execution error:\n\nDetected at node x\nout of range\nand more", "out of range"),
        ("Graph execution error:\n\n    Detected at node x", "Detected at node x"),
        ("", ""),
        ("Shapes must be equal:\n\n  [2] and\n", "Shapes must be equal: [2] and"),
        ("in user code:\n\n    ValueError: these differ:\n    a, b\n", "ValueError: these differ: a, b"),
        ("Nothing follows:", "Nothing follows:"),
    ):
        assert shorten(text) == line


def test_running_out_of_memory_is_told_from_other_errors() -> None:
    assert describe(MemoryError("no")).outcome == "out_of_memory"
    assert describe(ValueError("RESOURCE_EXHAUSTED: Out of memory")).outcome == "out_of_memory"
    assert describe(ValueError("wrong")).outcome == "failed"


def test_what_a_subject_says_is_what_is_read_and_what_is_no_message_is_not_taken_in() -> None:
    for message in (
        messages.Sampled(calls=3, seconds=[0.1, 0.2], faults=[1.0, 0.0], kernel_s=[0.0, 0.0], cpu_s=[0.1, 0.2]),
        messages.Rough(None),
        messages.Failed("timeout", "Timeout", "no answer", "…"),
        messages.Saved(),
    ):
        (line,) = messages.Lines().feed(messages.encode(message))
        assert messages.read(line) == message
    for wrong in (
        {"event": "sampled", "calls": 1, "seconds": "soon", "faults": [], "kernel_s": [], "last": True},
        {"event": "sampled", "calls": 1, "seconds": [0.1]},
        {"event": "error", "outcome": "splendid", "type": "", "message": "", "detail": ""},
        {"event": ["sampled"]},
        {},
    ):
        with pytest.raises(messages.ProtocolError, match="not a message"):
            messages.read(wrong)
