"""Why a strategy is as fast as it is: the sentences, and what stands in a run."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from measure.judge import reasons
from measure.model import why
from measure.model.run import AtPeak, Limit, Measurement, Memory
from measure.model.why import Explained, Fusion, Why
from measure.statistics.intervals import Ratio
from measure.store import imports
from measure.subject import messages
from tests import synthetic
from tests.explanations import EAGER, ELEMENT, FUSED, GRAPH, MS, ON_GPU, ran
from tests.synthetic import MIB, OUTPUT

ID = "0123456789abcdef01234567"

# --- sentences -------------------------------------------------------------------------------------------------------


def explained(slug: str, known: Why, outcome: str = "ok", memory: Memory | None = None) -> Any:
    item = synthetic.failure(*slug.split("."), outcome, "")
    return replace(item, why=known, memory=memory)


@pytest.mark.parametrize(
    ("slug", "known", "says"),
    [
        ("map_fn.eager", EAGER, ("93 % of its time in Python", "1.0 % in starting ops", "300 ops of 2.00 µs each")),
        ("map_fn.graph", GRAPH, ("a while loop in its graph: 1,005 ops of 500 ns each", "75 % on scheduling")),
        ("vectorized_map.eager",
         replace(EAGER, traces_per_call=1, building_s=6 * MS, op_count=4, in_ops_s=0.01 * MS),
         ("traces a function anew in every call", "60 % of its time goes into building graphs", "0.1 % into 4 ops")),
        ("vectorized_map.xla", replace(FUSED, fallbacks=["Where", "Sort"], loops=1),
         ("falls back to a while loop for `Where`, `Sort`", "in a loop that XLA kept", "90 % of its time")),
        ("vectorized_map.xla",
         replace(FUSED, fusions=[Fusion(name="f", ops=("add", "multiply", "multiply"))], threads=1, cores=0.98),
         ("one fusion of 3 ops (`multiply`, `add`), one pass over memory", "90 % of its time, on 1 thread")),
        ("batched.xla", replace(FUSED, in_streams_s=0.01 * MS, threads=3, cores=1.0),
         ("90 % of its time is the fixed cost of a call", "the GPU works for 10 %")),
        ("loop_compiled.eager", ELEMENT,
         ("80 % of its time in Python", "20 kernels of 1.00 µs each", "of the element function XLA makes one fusion")),
        ("numpy_function.graph", replace(GRAPH, ops=ran(("PyFunc", 50, 1 * MS), ("Mul", 955, 0.1 * MS))),
         ("leaves TensorFlow 50 times in a call", "NumPy takes 50 % of the time", "the other 955 ops")),
        ("dataset.graph", replace(GRAPH, ops=ran(("MapDataset", 1, 1 * MS)), op_count=9, in_ops_s=0.1 * MS),
         ("`tf.data` pipeline", "64 elements takes 95 % of the time", "9 ops")),
        # A call that was disturbed does not make its ops look small.
        ("a.graph", replace(GRAPH, call_s=40 * MS, profiled_s=1 * MS, in_ops_s=0.8 * MS), ("80 % of its time",)),
    ],
)  # fmt: skip
def test_what_takes_the_time_is_said_in_a_sentence(slug: str, known: Why, says: tuple[str, ...]):
    said = reasons.sentence(explained(slug, known), 64, None, None)
    assert said.startswith(f"`{slug}` ") and said.endswith(".") and not [part for part in says if part not in said], (
        said
    )


def test_the_hosts_time_is_divided_up_without_overlaps():
    for known in (EAGER, GRAPH, FUSED, ON_GPU, ELEMENT):
        parts = why.spent(known)
        on_host = parts.python_s + parts.building_s + parts.working_s + parts.waiting_s + parts.between_s
        assert on_host == pytest.approx(known.profiled_s), "a GPU's kernels run while the host does something else"
        assert parts.on_gpu_s == (known.in_streams_s or 0.0)


def held(peak: int, *holders: tuple[str, int]) -> Memory:
    return Memory(
        peak_bytes=peak, output_bytes=OUTPUT, temporary_bytes=peak - OUTPUT, input_bytes=0, captured_bytes=0,
        method="events", at_peak=[AtPeak(op=op, bytes=size) for op, size in holders],
    )  # fmt: skip


def test_memory_is_said_where_it_is_more_than_the_output():
    stack = ("map/TensorArrayV2Stack/TensorListStack", OUTPUT)
    for memory, parts in (
        (held(2 * OUTPUT, ("map/while/mul (100 ops)", OUTPUT), stack), ("2.00 ×", "`TensorListStack` copies it")),
        (held(3 * OUTPUT, ("strategy/mul", 2 * OUTPUT), ("Add", OUTPUT)),
         ("3.00 ×", f"`mul` holds {2 * OUTPUT / MIB:.2f} MiB")),
        (held(2 * OUTPUT), ("2.00 ×",)),
    ):  # fmt: skip
        said = reasons.copies(explained("map_fn.graph", GRAPH, memory=memory))
        assert all(part in said for part in parts), said
    for memory in (held(OUTPUT + 1_000, ("Pack", OUTPUT)), None):
        assert reasons.copies(explained("map_fn.graph", GRAPH, memory=memory)) == ""


ROOF = Limit(
    seconds=1e-3, term="memory-bound", bytes=8, bandwidth_bytes_per_s=1e9, flops=0, flops_per_s=1e9, dispatch_s=1e-6
)


def test_the_gap_to_the_fastest_has_its_interval_and_that_of_the_fastest_is_to_the_limit():
    best = explained("batched.xla", replace(FUSED, times_limit=1.9))

    def said(*ratio: float) -> str:
        return reasons.sentence(explained("map_fn.graph", GRAPH), 64, best, Ratio(*ratio, p=0.1), ROOF)

    assert "37 × [35, 39] as long as `batched.xla`" in said(37.2, 35.0, 39.4) and "floor" not in said(37.2, 35.0, 39.4)
    assert "cannot be told apart from `batched.xla`" in said(1.01, 0.98, 1.04)
    assert "1.90 × the theoretical floor (estimate), memory-bound" in reasons.sentence(best, 64, best, None, ROOF)
    for known, roof in ((best.why, None), (replace(FUSED, limit_note="faster than the floor"), ROOF), (FUSED, ROOF)):
        item = explained("batched.xla", known)
        assert "floor" not in reasons.sentence(item, 64, item, None, roof)


def test_no_strategy_is_without_a_sentence_whatever_became_of_it():
    run = synthetic.run(ID)
    items = [replace(item, why=GRAPH) if item.strategy == "loop.eager" else item for item in run.measurements]
    run = replace(run, measurements=items)
    said = reasons.sentences(run)
    assert set(said) == {item.strategy for item in run.measurements if not item.twin_of}
    assert said == {slug: f"`{slug}` {words}" for slug, words in reasons.predicates(run).items()}
    assert "as long as `batched.xla`" in said["loop.eager"]
    assert said["numpy_function.xla"].endswith("XLA cannot compile tf.numpy_function.")
    assert said["map_fn.graph"] == "`map_fn.graph` has not been explained yet."
    failed = explained("map_fn.graph", Why(note="no answer within 9 s."))
    assert reasons.sentence(failed, 64, None, None).endswith("no answer within 9 s.")
    assert "it is wrong" in reasons.sentence(explained("a.graph", GRAPH, outcome="wrong"), 64, None, None)


# --- what stands in a run --------------------------------------------------------------------------------------------


def test_a_run_file_holds_what_is_known_and_of_an_explanation_all():
    def written(known: Why) -> bytes:
        item = replace(synthetic.failure("a", "graph", "ok", ""), why=known)
        again = msgspec.json.decode(msgspec.json.encode(item), type=Measurement)
        assert again == item and type(again.why) is type(known)
        return msgspec.json.encode(item.why)

    assert written(Why()) == b"{}"
    assert written(Why(runtime_start_s=0.5, limit_note="quick")) == b'{"runtime_start_s":0.5,"limit_note":"quick"}'
    assert b'"traces_per_call":0.0,' in written(Explained(note="no answer", times_limit=2.0))
    assert Explained(op_count=5).beside(Why(times_limit=3.0)) == Explained(op_count=5, times_limit=3.0), "it stays"


def test_strange_reasons_are_refused_from_elsewhere_and_from_subjects():
    run = msgspec.to_builtins(synthetic.run(ID, ("batched.xla", "loop.eager"), unhappy=False))
    for strange in (
        {"op_count": -1}, {"call_s": float("inf")}, {"surprise": 1}, {"ops": [{"name": "x" * 201, "count": 1}]},
        {"ops": [{"name": "x", "count": 1}] * 61}, {"graph": {"nodes": 1}}, {"note": "x" * 2_001}, {"cores": -0.5},
    ):  # fmt: skip
        raw = msgspec.to_builtins(Explained(op_count=1_005, profiled_s=1.0)) | strange
        run["measurements"][0]["why"] = raw
        with pytest.raises(ValueError, match=r"not a valid run file.* - at `\$\.measurements\[0\]\.why"):
            imports.read(msgspec.json.encode(run))
        if "surprise" not in strange:  # a field that there is not is not taken in
            with pytest.raises(messages.ProtocolError, match=r"not a message"):
                messages.read({"event": "why", "why": raw})
