"""What an explanation asks of TensorFlow, and when: in a process of its own, of strategies made for it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from measure.model import why
from tests import warm
from tests.engine import ROOT

_CODE = """
import pathlib, sys, types
import msgspec
import tensorflow as tf
from measure.subject import profiler
from measure.subject.explain import explain as explain_subject

happened = []
start = profiler.start
profiler.start = lambda *arguments, **more: happened.append("profiler") or start(*arguments, **more)
found = {}

def explain(name, strategy, elems, slug="own.eager?chunk=2&jit_compile=true", **more):
    def called(values):
        happened.append("call")
        return strategy(values)

    happened.clear()
    folder = pathlib.Path(sys.argv[1]) / name
    folder.mkdir()
    module = types.SimpleNamespace(strategy=called, elems=elems, **more)
    # However slow the machine: as many warm calls, and as many watched ones, as there can be.
    reasons = explain_subject(module, "eager", slug, folder, lambda: None, on_gpu=False, repeated_s=1e9)
    found[name] = [reasons, list(happened)]

calls = 0

@tf.function
def traced(x, number):
    return x * number

def retracing(x):
    global calls
    calls += 1
    return traced(x, {2: 7, 3: 8, 9: 9}.get(calls, 1))

@tf.function(jit_compile=True)
def sine(x):
    return tf.sin(x) * 2 + 1

@tf.function(jit_compile=True)
def shaped(shape):
    return tf.reshape(tf.range(4.0), shape)

def all_shaped(x):
    return [shaped(each) for each in x]

shapes = tf.constant([[2, 2], [4, 1]])
explain("retraces", retracing, tf.ones([3]), "own.eager")
explain("element", lambda x: [sine(x[0]), sine(x[1])], tf.ones([2, 5]), fn=sine)
explain("known shapes", all_shaped, shapes, fn=shaped)
explain("no element", all_shaped, shapes[:0], fn=shaped)
explain("no function", all_shaped, shapes)
print("RESULT", msgspec.json.encode(found).decode())
"""


@dataclass(frozen=True)
class Explained:
    """The reasons, in which order the profiler started and calls were made, and the program that was left."""

    why: why.Why
    order: list[str]
    program: str


@pytest.fixture(scope="module")
def explained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Explained]:
    folder = tmp_path_factory.mktemp("why")
    done = warm.run(_CODE, folder, folder=ROOT)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert lines, done.stderr[-3_000:]
    found: dict[str, Any] = msgspec.json.decode(lines[0].removeprefix("RESULT "))
    return {
        name: Explained(msgspec.convert(raw, why.Explained), order, _text(folder / name))
        for name, (raw, order) in found.items()
    }


def _text(folder: Path) -> str:
    return (folder / why.HLO).read_text() if (folder / why.HLO).exists() else ""


def test_retraces_are_counted_in_every_call_and_not_rounded_away(explained: dict[str, Explained]):
    # The first call, five warm ones, five that are watched: it retraces in the second, the third and the ninth.
    found = explained["retraces"]
    assert (found.why.traces_first, found.why.traces_warm) == (1, 2)
    assert found.why.traces_per_call == pytest.approx(1 / 5)
    assert found.order[:2] == ["profiler", "call"] and not found.why.of_element


def test_an_element_function_that_xla_compiles_has_its_program_and_is_not_watched_while_it_compiles(
    explained: dict[str, Explained],
):
    found = explained["element"]
    assert found.why.of_element and found.why.loops == 0 and found.why.fusion_count == 1 and found.why.fused_ops >= 2
    assert found.why.kernel_count == 2 and why.op_count(found.why) >= 2 and found.why.compiled_in == 0
    assert found.order[:2] == ["call", "profiler"] and "fusion" in found.program


def test_what_is_compiled_into_an_elements_program_or_that_there_is_none(explained: dict[str, Explained]):
    # A shape has to be known when XLA compiles.
    assert explained["known shapes"].why.compiled_in == 1 and explained["known shapes"].program
    for name in ("no element", "no function"):
        found = explained[name]
        assert found.why.of_element and found.why.loops is None and not found.why.compiled_in and not found.program
