"""What an explanation asks of TensorFlow, and when: of strategies made for it."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from measure.model import why
from measure.subject import explain, profiler

Explain = Callable[..., tuple[why.Explained, list[str]]]


@pytest.fixture
def explained(tf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Explain:
    """``explained(strategy, elems, slug)``: the reasons, and the order of the profiler's start and of calls."""
    happened: list[str] = []
    start = profiler.start
    monkeypatch.setattr(profiler, "start", lambda *of, **more: happened.append("profiler") or start(*of, **more))

    def of(strategy: Any, elems: Any, slug: str, **more: Any) -> tuple[why.Explained, list[str]]:
        def called(values: Any) -> Any:
            happened.append("call")
            return strategy(values)

        module: Any = SimpleNamespace(strategy=called, elems=elems, **more)
        # However slow the machine: as many warm calls, and as many watched ones, as there can be.
        found = explain.explain(module, "eager", slug, tmp_path, lambda: None, on_gpu=False, repeated_s=1e9)
        return found, happened

    return of


def test_retraces_are_counted_in_every_call_and_not_rounded_away(tf: Any, explained: Explain):
    calls = 0

    @tf.function
    def traced(x, number):
        return x * number

    def retracing(x):
        nonlocal calls
        calls += 1
        return traced(x, {2: 7, 3: 8, 9: 9}.get(calls, 1))

    # The first call, five warm ones, five that are watched: it retraces in the second, the third and the ninth.
    found, order = explained(retracing, tf.ones([3]), "own.eager")
    assert (found.traces_first, found.traces_warm) == (1, 2)
    assert found.traces_per_call == pytest.approx(1 / 5)
    assert order[:2] == ["profiler", "call"] and not found.of_element


def test_an_element_function_that_xla_compiles_has_its_program_and_is_not_watched_while_it_compiles(
    tf: Any, explained: Explain, tmp_path: Path
):
    @tf.function(jit_compile=True)
    def sine(x):
        return tf.sin(x) * 2 + 1

    slug = "own.eager?chunk=2&jit_compile=true"
    found, order = explained(lambda x: [sine(x[0]), sine(x[1])], tf.ones([2, 5]), slug, fn=sine)
    assert found.of_element and found.loops == 0 and found.fusion_count and found.fused_ops
    assert found.kernel_count and why.op_count(found) >= 2 and found.compiled_in == 0
    assert order[:2] == ["call", "profiler"] and "fusion" in (tmp_path / why.HLO).read_text()
    without, _ = explained(lambda x: x, tf.ones([2, 5]), slug)
    assert without.of_element and without.loops is None and not without.compiled_in
