"""Why a strategy is as fast as it is: the sentences, and what stands in a run."""

import re
from typing import Any

import pytest
from msgspec.structs import replace

from measure.judge import limit, reasons
from measure.judge.findings import findings
from measure.run import why
from measure.run.run import AtPeak, Memory, Run
from measure.run.why import Why
from tests import synthetic
from tests.explanations import EAGER, ELEMENT, FUSED, GRAPH, MS, ON_GPU, ran
from tests.synthetic import MIB, OUTPUT

ID = "0123456789abcdef01234567"


def with_why(why_of: Why, *, outcome: Any = "ok", memory: Memory | None = None) -> Run:
    """A run whose slowest strategy, `loop.eager`, has these reasons."""
    run = synthetic.run(ID)
    own = replace(run.measurement("loop.eager"), why=why_of, outcome=outcome, memory=memory)
    return replace(run, measurements=[own, *(item for item in run.measurements if item.strategy != own.strategy)])


def words(why_of: Why, **more: Any) -> str:
    return reasons.predicates(findings(with_why(why_of, **more)))["loop.eager"]


@pytest.mark.parametrize(
    ("why_of", "parts"),
    [
        (EAGER, ("runs 300 ops, most of their time in `Mul`: 93% of its time in Python, 6.0% in ops",)),
        (GRAPH, ("1,005 ops", "82% of its time in dispatch, 12% in ops", "a while loop in its graph")),
        (replace(EAGER, traces_per_call=1, building_s=6 * MS, python_s=3 * MS),
         ("every call traces 1.00 functions anew", "60% of its time in building graphs")),
        (replace(FUSED, fallbacks=["Where", "Sort"], loops=1),
         ("falls back to a while loop for `Where`, `Sort`", "1 fusion and a loop", "dispatch, 45% in ops")),
        (ON_GPU, ("2 kernels on the GPU, most of their time in `gemm`", "while the GPU works for 90%")),
        (ELEMENT, ("81 ops and 20 kernels of XLA's", "XLA compiles the element function by itself")),
        (replace(GRAPH, ops=ran(("PyFunc", 50, 1 * MS))), ("leaves TensorFlow for Python 50 times",)),
        (replace(GRAPH, ops=ran(("MapDataset", 1, 1 * MS))), ("`tf.data` pipeline",)),
        # A call that was disturbed does not make its ops look small.
        (replace(GRAPH, call_s=40 * MS, profiled_s=1 * MS, in_ops_s=0.8 * MS), ("80% of its time in ops",)),
    ],
)  # fmt: skip
def test_what_takes_the_time_is_said_in_a_sentence(why_of: Why, parts: tuple[str, ...]):
    predicate = words(why_of)
    assert predicate.endswith(".") and not [part for part in parts if part not in predicate], predicate


def test_the_hosts_time_is_divided_up_without_overlaps():
    for why_of in (EAGER, GRAPH, FUSED, ON_GPU, ELEMENT, Why(profiled_s=1.0)):
        shares = why.shares(why_of)
        assert sum(shares.values()) == pytest.approx(1.0) and min(shares.values()) >= 0.0
    assert why.shares(ON_GPU)["in ops"] == pytest.approx(0.05), "a GPU's kernels run while the host does something else"
    noisy = replace(GRAPH, call_s=GRAPH.profiled_s / 2)
    assert why.shares(noisy) == why.shares(GRAPH), "of the call that was watched, whatever others took"


def test_memory_is_said_where_it_is_more_than_the_output():
    held = Memory(
        peak_bytes=2 * OUTPUT, output_bytes=OUTPUT, temporary_bytes=OUTPUT, input_bytes=0, captured_bytes=0,
        method="events", at_peak=[AtPeak(op="map/TensorArrayV2Stack/TensorListStack", bytes=OUTPUT)],
    )  # fmt: skip
    peak = words(GRAPH, memory=held)
    assert f"it peaks at 2.00× its output, of which `TensorListStack` holds {OUTPUT / MIB:.2f} MiB" in peak
    for memory in (replace(held, peak_bytes=OUTPUT + 1_000), None):
        assert "peaks" not in words(GRAPH, memory=memory)


def test_the_gap_to_the_fastest_has_its_interval_and_that_of_the_fastest_is_to_the_limit():
    assert re.search(r"that takes [\d.]+× \([\d.]+–[\d.]+\) as long as `batched.xla`\.$", words(GRAPH))
    run = synthetic.run(ID, unhappy=False)
    run = limit.judge(replace(run, limit=replace(run.limit, seconds=0.00071, term="memory-bound")))
    best = replace(run.measurement("batched.xla"), why=replace(FUSED, times_limit=1.9))
    run = replace(run, measurements=[best, *(item for item in run.measurements if item.strategy != best.strategy)])
    assert "that is 1.90× the theoretical floor (estimate)." in reasons.predicates(findings(run))["batched.xla"]


def test_no_strategy_is_without_a_sentence_whatever_became_of_it():
    run = with_why(GRAPH)
    predicates = reasons.predicates(findings(run))
    assert set(predicates) == {item.strategy for item in run.measurements if not item.twin_of}
    assert predicates["numpy_function.xla"].endswith("XLA cannot compile tf.numpy_function.")
    assert predicates["map_fn.graph"] == "has not been explained yet."
    assert words(Why(note="no answer within 9 s.")) == "could not be explained: no answer within 9 s."
    assert "it is wrong" in words(GRAPH, outcome="wrong")
