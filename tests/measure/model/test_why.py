"""Why a strategy is as fast as it is: the sentences, and what stands in a run."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import asdict, replace

from measure.judge import reasons
from measure.model import why
from measure.model.run import AtPeak, Limit, Measurement, Memory
from measure.model.run_file import encode
from measure.model.why import Explained, Fusion, Graph, Why
from measure.statistics.intervals import Ratio
from measure.store import imports, store
from measure.subject import messages
from tests import synthetic
from tests.benchmarks.why import ENTRY, EXECUTED, HANDED, OUTSIDE, disagreements
from tests.explanations import EAGER, ELEMENT, EXPLAINED, FUSED, GRAPH, MS, ON_GPU, SOLO, ran
from tests.synthetic import HOSTILE, MIB, OUTPUT

ID = "0123456789abcdef01234567"

# --- sentences -------------------------------------------------------------------------------------------------------


def explained(slug: str, known: Why, outcome: str = "ok", error: str = "", memory: Memory | None = None) -> Any:
    item = synthetic.failure(*slug.split("."), outcome, error)
    return replace(item, why=known, memory=memory)


@pytest.mark.parametrize(
    ("slug", "known", "says"),
    [
        ("map_fn.eager", EAGER,
         "spends 93 % of its time in Python, and 1.0 % in starting ops, between 300 ops of 2.00 µs each"),
        ("batched.eager", replace(EAGER, python_s=1 * MS, in_ops_s=8.5 * MS, op_count=4),
         "spends 85 % of its time in 4 ops, most of it in `Mul`."),
        ("batched.eager", replace(SOLO, threads=2, cores=1.94),
         "spends 95 % of its time in 1 op, `Sqrt`, on 2 threads that keep 1.9 cores busy."),
        ("batched.graph", replace(SOLO, threads=1, cores=0.97),
         "runs 1 op, `Sqrt`, which takes 95 % of its time, on 1 thread."),
        ("batched.graph", replace(SOLO, threads=2), "runs 1 op, `Sqrt`, which takes 95 % of its time, on 2 threads."),
        ("map_fn.graph", GRAPH,
         "runs a while loop in its graph: 1,005 ops of 500 ns each, and spends 75 % on scheduling them and calling "
         "the function"),
        ("loop.graph", replace(GRAPH, graph=Graph(nodes=643, top_nodes=643, functions=0), in_ops_s=1.5 * MS),
         "has 64 unrolled copies of the function in a graph of 643 nodes, and runs 1,005 ops, which take 75 % of its "
         "time, all of it in `Mul`."),
        ("batched.graph", Why(call_s=1 * MS, profiled_s=1 * MS, op_count=1, in_ops_s=1e-6, ops=ran(("Mul", 1, 1e-6))),
         "runs 1 op of 1.00 µs, and spends 100 % on calling the function"),
        ("vectorized_map.eager",
         replace(EAGER, traces_per_call=1, building_s=6 * MS, op_count=4, in_ops_s=0.01 * MS),
         "traces a function anew in every call: 60 % of its time goes into building graphs, and 0.1 % into 4 ops"),
        ("vectorized_map.graph", replace(GRAPH, fallbacks=["Where"]),
         "falls back to a while loop for `Where`, which `tf.vectorized_map` cannot vectorise, and runs 1,005 ops of "
         "500 ns each"),
        ("vectorized_map.xla", replace(FUSED, fallbacks=["Where", "Sort"], loops=1),
         "falls back to a while loop for `Where`, `Sort`, which `tf.vectorized_map` cannot vectorise, and runs 1 "
         "fusion of 3 ops, 1 kernel a call, in a loop that XLA kept: it takes 90 % of its time."),
        ("vectorized_map.xla", replace(FUSED, compiled_in=1),
         "runs one fusion of 3 ops, one pass over memory, with the values of an input compiled in, so that the program "
         "serves no others: it takes 90 % of its time."),
        ("vectorized_map.xla", replace(FUSED, compiled_in=2),
         "runs one fusion of 3 ops, one pass over memory, with the values of 2 inputs compiled in, so that the program "
         "serves no others: it takes 90 % of its time."),
        ("vectorized_map.xla", FUSED, "runs one fusion of 3 ops, one pass over memory: it takes 90 % of its time."),
        ("vectorized_map.xla",
         replace(FUSED, fusions=[Fusion(name="f", ops=("add", "multiply", "multiply"))], threads=1, cores=0.98),
         "runs one fusion of 3 ops (`multiply`, `add`), one pass over memory: it takes 90 % of its time, on 1 thread."),
        ("vectorized_map.xla", replace(FUSED, fusions=[Fusion(name="f", ops=tuple("abcd"))]),
         "runs one fusion of 3 ops (`a`, `b`, `c`, …), one pass over memory: it takes 90 % of its time."),
        ("map_fn.xla",
         replace(FUSED, loops=1, fusion_count=4, fused_ops=10, kernel_count=3, in_kernels_s=0.001 * MS,
                 other_instructions=ran(("copy", 2, 0.0))),
         "runs 4 fusions of 10 ops and 2 further instructions (`copy`), 3 kernels a call, in a loop that XLA kept: "
         "99 % of its time is the fixed cost of a call"),
        ("counter.xla", Why(call_s=1 * MS, profiled_s=1 * MS, loops=0, op_count=1, ops=ran(("X", 1, 0.0))),
         "runs a program without work of its own"),
        ("batched.graph",
         replace(SOLO, op_count=5, ops=ran(*((name, 1, 0.19 * MS) for name in ("Sin", "Cos", "Exp", "Log", "Tan")))),
         "runs 5 ops, which take 95 % of its time, 20 % of it in `Sin`, the longest."),
        ("batched.eager",
         replace(SOLO, op_count=4, ops=ran(("Sin", 2, 0.5 * MS), ("Cos", 2, 0.5 * MS))),
         "spends 95 % of its time in 4 ops, most of it in `Sin`."),
        ("map_fn.graph",
         replace(SOLO, op_count=101, in_ops_s=0.2 * MS, ops=ran(("While", 1, 9 * MS), ("Mul", 100, 0.2 * MS))),
         "runs 100 ops of 2.00 µs each, and spends 80 % on scheduling"),
        ("map_fn.graph",
         replace(SOLO, op_count=102, ops=ran(("While", 1, 9 * MS), ("Mul", 100, 0.9 * MS), ("Add", 1, 0.05 * MS))),
         "runs 101 ops, which take 95 % of its time, most of it in `Mul`."),
        ("loop.eager",
         Why(call_s=1 * MS, profiled_s=1 * MS, python_s=0.6 * MS, kernel_count=64, in_kernels_s=0.128 * MS,
             kernels=ran(("fusion", 64, 0.128 * MS))),
         "spends 60 % of its time in Python, and 27 % in starting kernels, between 64 kernels of 2.00 µs each."),
        ("loop.graph", Why(call_s=1 * MS, profiled_s=1 * MS, op_count=7, in_ops_s=0.3 * MS),
         "runs 7 ops, and spends 70 % on scheduling them and calling the function."),
        ("loop.graph", Why(call_s=1 * MS, profiled_s=1 * MS, op_count=7, in_ops_s=0.6 * MS),
         "runs 7 ops, which take 60 % of its time."),
        ("loop.graph",
         Why(call_s=1 * MS, profiled_s=1 * MS, op_count=7, in_ops_s=0.6 * MS, ops=ran(("A", 3, 0.0), ("B", 4, 0.0))),
         "runs 7 ops, which take 60 % of its time."),
        ("loop.graph", Why(call_s=1 * MS, profiled_s=1 * MS, kernel_count=1, in_kernels_s=0.3 * MS),
         "runs 1 kernel, and spends 70 % on calling the function."),
        ("loop.graph", Why(call_s=1 * MS, profiled_s=1 * MS, op_count=1, ops=ran(("PartitionedCall", 1, 1 * MS))),
         "runs no op that takes time: calling the function is all that it does."),
        ("loop.eager", ON_GPU,
         "runs 2 kernels on the GPU, which take 90 % of its time, all of it in `gemm`; beside them the host spends "
         "30 % of its time in Python, and 10 % in starting ops, around 3 ops in 50.0 µs."),
        ("batched.graph",
         replace(ON_GPU, kernel_count=3, kernels=ran(("gemm", 2, 0.3 * MS), ("add", 1, 0.6 * MS)), python_s=0.0),
         "runs 3 kernels on the GPU, which take 90 % of its time, most of it in `add`; beside them the host runs 3 ops "
         "in 50.0 µs."),
        ("batched.graph", replace(ON_GPU, kernel_count=1, op_count=0, ops=[], kernels=[]),
         "runs 1 kernel on the GPU, which takes 90 % of its time; beside it the host runs no op."),
        ("batched.xla", replace(FUSED, in_streams_s=0.09 * MS),
         "runs one fusion of 3 ops, one pass over memory: it takes 90 % of its time, on the GPU."),
        ("batched.xla", replace(FUSED, in_streams_s=0.01 * MS, threads=3, cores=1.0),
         "runs one fusion of 3 ops, one pass over memory: 90 % of its time is the fixed cost of a call, while the GPU "
         "works for 10 %."),
        ("loop_compiled.eager", ELEMENT,
         "spends 80 % of its time in Python, and 18 % in starting ops, between 81 ops of 2.00 µs each and 20 kernels "
         "of 1.00 µs each; of the element function XLA makes one fusion of 3 ops, one pass over memory."),
        ("dataset.graph", replace(ELEMENT, ops=ran(("MapDataset", 1, 0.1 * MS)), op_count=4, compiled_in=1),
         "runs a `tf.data` pipeline: making it and handing over 64 elements takes 98 % of the time, and 4 ops and "
         "20 kernels the rest; of the element function XLA makes one fusion of 3 ops, one pass over memory, with the "
         "values of an input compiled in, so that the program serves no others."),
        ("loop_compiled.graph", replace(ELEMENT, loops=None, fusion_count=0, in_ops_s=8 * MS),
         "runs 81 ops and 20 kernels, which take 89 % of its time, most of it in `StridedSlice`; XLA compiles the "
         "element function by itself, and does not tell its program."),
        ("vectorized_map.eager", replace(EAGER, traces_per_call=2.6, building_s=6 * MS),
         "traces functions anew, 2.6 a call on average: 60 % of its time goes into building graphs"),
        ("map_fn.eager", replace(EAGER, traces_per_call=0.4),
         "spends 93 % of its time in Python, and 1.0 % in starting ops, between 300 ops of 2.00 µs each; some of its "
         "calls trace a function anew, 0.4 a call on average."),
        ("map_fn.eager", replace(EAGER, traces_warm=2),
         "spends 93 % of its time in Python, and 1.0 % in starting ops, between 300 ops of 2.00 µs each; after the "
         "first call it traced 2 further functions before it was steady."),
        ("numpy_function.graph", replace(GRAPH, ops=ran(("PyFunc", 50, 1 * MS), ("Mul", 955, 0.1 * MS))),
         "leaves TensorFlow 50 times in a call, by `PyFunc`: NumPy takes 50 % of the time, and the other 955 ops"),
        ("dataset.graph", replace(GRAPH, ops=ran(("MapDataset", 1, 1 * MS)), op_count=9, in_ops_s=0.1 * MS),
         "runs a `tf.data` pipeline: making it and handing over 64 elements takes 95 % of the time, and 9 ops the"),
        ("numpy.eager", Why(call_s=1 * MS, profiled_s=1 * MS, python_s=1 * MS),
         "spends all of its time in Python and NumPy, slice by slice for 64 slices: no op of TensorFlow's runs"),
        ("numpy_batched.eager", Why(call_s=1 * MS, profiled_s=1 * MS),
         "spends all of its time in Python and NumPy: no op of TensorFlow's runs"),
    ],
)  # fmt: skip
def test_what_takes_the_time_is_said_in_a_sentence(slug: str, known: Why, says: str):
    said = reasons.sentence(explained(slug, known), 64, None, None)
    assert said.startswith(f"`{slug}` {says}") and said.endswith(".") and said.count("..") == 0, said


def test_a_call_that_was_disturbed_does_not_make_its_ops_look_small():
    disturbed = replace(GRAPH, call_s=40 * MS, profiled_s=1 * MS, in_ops_s=0.8 * MS)
    assert "1,005 ops, which take 80 % of its time" in reasons.sentence(explained("a.graph", disturbed), 64, None, None)


@pytest.mark.parametrize("known", [EAGER, GRAPH, FUSED, ON_GPU, ELEMENT])
def test_the_hosts_time_is_divided_up_without_overlaps(known: Why):
    parts = why.spent(known)
    on_host = parts.python_s + parts.building_s + parts.working_s + parts.waiting_s + parts.between_s
    assert on_host == pytest.approx(known.profiled_s), "a GPU's kernels run while the host does something else"
    assert parts.on_gpu_s == (known.in_streams_s or 0.0)


def held(peak: int, *holders: tuple[str, int]) -> Memory:
    return Memory(
        peak_bytes=peak, output_bytes=OUTPUT, temporary_bytes=peak - OUTPUT, input_bytes=0, captured_bytes=0,
        method="events", at_peak=[AtPeak(op=op, bytes=size) for op, size in holders],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("memory", "says"),
    [
        (held(2 * OUTPUT, ("map/while/mul (100 ops)", OUTPUT), ("map/TensorArrayV2Stack/TensorListStack", OUTPUT)),
         "it peaks at 2.00 × its output because `TensorListStack` copies it"),
        (held(3 * OUTPUT, ("strategy/Pack", OUTPUT), ("Mul", 2 * OUTPUT)),
         "it peaks at 3.00 × its output because `Pack` copies it"),
        (held(3 * OUTPUT, ("strategy/mul", 2 * OUTPUT), ("Add", OUTPUT)),
         f"it peaks at 3.00 × its output, of which `mul` holds {2 * OUTPUT / MIB:.2f} MiB"),
        (held(2 * OUTPUT), "it peaks at 2.00 × its output"),
        (held(OUTPUT + 1_000, ("Pack", OUTPUT)), ""),
        (None, ""),
    ],
)  # fmt: skip
def test_memory_is_said_where_it_is_more_than_the_output(memory: Memory | None, says: str):
    assert reasons.copies(explained("map_fn.graph", GRAPH, memory=memory)) == says


def test_the_gap_to_the_fastest_has_its_interval():
    best = explained("batched.xla", FUSED)

    def said(*ratio: float) -> str:
        return reasons.sentence(explained("map_fn.graph", GRAPH), 64, best, Ratio(*ratio, p=0.1))

    assert said(37.2, 35.0, 39.4).endswith("; that takes 37 × [35, 39] as long as `batched.xla` with its 1 kernel.")
    assert said(1.01, 0.98, 1.04).endswith("; that cannot be told apart from `batched.xla` with its 1 kernel.")
    unknown = replace(best, why=Why())
    assert reasons.sentence(explained("map_fn.graph", GRAPH), 64, unknown, Ratio(2.0, 1.9, 2.1, 0.0)).endswith(
        "; that takes 2.00 × [1.90, 2.10] as long as `batched.xla`."
    )


ROOF = Limit(
    seconds=1e-3, term="memory-bound", bytes=8, bandwidth_bytes_per_s=1e9, flops=0, flops_per_s=1e9, dispatch_s=1e-6
)


@pytest.mark.parametrize(
    ("known", "roof", "says"),
    [
        ({"times_limit": 1.9}, ROOF,
         "takes 90 % of its time; that is 1.90 × the theoretical floor (estimate), memory-bound."),
        ({"times_limit": 1.9}, replace(ROOF, term=""),
         "takes 90 % of its time; that is 1.90 × the theoretical floor (estimate)."),
        ({"times_limit": 1.9}, None, "takes 90 % of its time."),
        ({"limit_note": "faster than the theoretical floor: XLA has simplified it"}, ROOF, "takes 90 % of its time."),
        ({}, ROOF, "takes 90 % of its time."),
    ],
)  # fmt: skip
def test_the_gap_of_the_fastest_is_that_to_the_limit(known: dict[str, Any], roof: Limit | None, says: str):
    item = explained("batched.xla", FUSED)
    item = replace(item, why=replace(item.why, **{"times_limit": None, "limit_note": ""} | known))
    assert reasons.sentence(item, 64, item, None, roof).endswith(says)
    slower = replace(item, strategy="a.xla")
    assert "floor" not in reasons.sentence(slower, 64, item, Ratio(2.0, 1.9, 2.1, 0.0), roof)


def test_in_a_run_only_the_fastest_is_held_against_the_limit():
    run = replace(synthetic.run(ID, ("batched.xla", "loop.eager"), unhappy=False), limit=ROOF)
    items = [replace(item, why=replace(FUSED, times_limit=3.0)) for item in run.measurements]
    said = reasons.sentences(replace(run, measurements=items))
    assert said["batched.xla"].endswith("; that is 3.00 × the theoretical floor (estimate), memory-bound.")
    assert "floor" not in said["loop.eager"] and "as long as `batched.xla`" in said["loop.eager"]


def test_no_strategy_is_without_a_sentence_whatever_became_of_it():
    run = synthetic.run(ID)
    items = [replace(item, why=GRAPH) if item.strategy == "loop.eager" else item
             for item in run.measurements]  # fmt: skip
    said = reasons.sentences(replace(run, measurements=items))
    assert set(said) == {item.strategy for item in run.measurements if not item.twin_of}
    assert "as long as `batched.xla`" in said["loop.eager"]
    assert said["numpy_function.xla"] == "`numpy_function.xla` cannot run: XLA cannot compile tf.numpy_function."
    assert said["loop.xla"].startswith("`loop.xla` did not finish in its time, so there is no steady call to explain: ")
    assert said["map_fn.graph"] == "`map_fn.graph` has not been explained yet."
    failed = explained("map_fn.graph", Why(note="no answer within 9 s."), outcome="ok")
    assert reasons.sentence(failed, 64, None, None) == "`map_fn.graph` could not be explained: no answer within 9 s."
    dead = explained("a.graph", Why(note="the process aborted"), outcome="wrong")
    assert reasons.sentence(dead, 64, None, None).endswith("the process aborted; it is wrong, as its row says.")
    assert "it is wrong" in reasons.sentence(explained("a.graph", GRAPH, outcome="wrong"), 64, None, None)


# --- beside an independent trace --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "independent", "differ"),
    [
        (EAGER, {HANDED: {"Mul": 200, "Add": 100, "_EagerConst": 3}}, []),
        (EAGER, {HANDED: {"Mul": 200, "Pack": 1}},
         [f"Add: 100, {HANDED}: 0", f"Pack: 0, {HANDED}: 1"]),
        (GRAPH, {EXECUTED: {"Mul": 1_005, "_Arg": 1, "Merge": 7}}, []),
        (GRAPH, {EXECUTED: {"Mul": 1_004}}, [f"Mul: 1005, {EXECUTED}: 1004"]),
        (EAGER, {HANDED: {"Mul": 200, "Add": 100}, OUTSIDE: [0.85, 0.84, 0.88]}, []),
        (EAGER, {HANDED: {"Mul": 200, "Add": 100}, OUTSIDE: [0.80, 0.82, 0.81]},
         ["outside of TensorFlow: 93%, by a clock: 81%"]),
        (replace(EAGER, python_s=1 * MS, building_s=7 * MS),
         {HANDED: {"Mul": 200, "Add": 100}, OUTSIDE: [0.80, 0.82, 0.81]}, []),
        # A clock whose own calls differ by more cannot tell.
        (EAGER, {HANDED: {"Mul": 200, "Add": 100}, OUTSIDE: [0.50, 0.61, 0.70]}, []),
        (FUSED, {ENTRY: {"fusion": 1}}, []),
        (FUSED, {ENTRY: {"fusion": 1, "copy": 1}},
         [f"kernels: 1, {ENTRY}: 2", f"fusions and other instructions: 1, {ENTRY}: 2"]),
    ],
)  # fmt: skip
def test_an_independent_trace_that_counts_otherwise_is_seen(known: Why, independent: dict[str, Any], differ: list[str]):
    assert disagreements(known, independent) == differ


# --- what stands in a run --------------------------------------------------------------------------------------------


def test_what_a_comparison_knows_without_explaining_stays():
    before = Why(runtime_start_s=0.02, times_limit=3.0)
    both = Explained(op_count=1_005, profiled_s=1.0).beside(before)
    assert (both.runtime_start_s, both.times_limit, both.limit_note, both.op_count) == (0.02, 3.0, "", 1_005)
    item = replace(synthetic.failure("a", "graph", "ok", ""), why=before)
    assert why.known(item.why) is None, "a run that was only timed is not explained"
    assert why.known(replace(item, why=both).why) == both


def written(known: Why) -> bytes:
    return msgspec.json.encode(replace(synthetic.failure("a", "graph", "ok", ""), why=known).why)


def test_a_run_file_holds_what_is_known_and_of_an_explanation_all():
    assert written(Why()) == b"{}"
    assert written(Why(runtime_start_s=0.5, limit_note="quick")) == b'{"runtime_start_s":0.5,"limit_note":"quick"}'
    whole = written(Explained(note="no answer"))
    assert whole.startswith(b'{"call_s":0.0,"profiled_s":0.0,"traces_first":0,"traces_warm":0,"traces_per_call":0.0,')
    assert whole.endswith(b'"note":"no answer","runtime_start_s":null,"times_limit":null,"limit_note":""}')
    for known in (Why(), Why(times_limit=2.0), Explained(note="no answer"), Explained(profiled_s=1.0, times_limit=2.0)):
        item = replace(synthetic.failure("a", "graph", "ok", ""), why=known)
        again = msgspec.json.decode(msgspec.json.encode(item), type=Measurement)
        assert again == item and type(again.why) is type(known)


STRANGE = [
    {"op_count": -1}, {"op_count": 1.5}, {"call_s": float("inf")}, {"call_s": "long"}, {"surprise": 1},
    {"ops": [{"name": "x" * 201, "count": 1}]}, {"ops": [{"name": "x", "count": 1}] * 61}, {"ops": "many"},
    {"graph": {"nodes": 1}}, {"fusions": [{"name": "a", "ops": [1]}]}, {"note": "x" * 2_001}, {"fallbacks": [None]},
    {"cores": -0.5}, {"note": 7},
]  # fmt: skip


@pytest.mark.parametrize("strange", STRANGE, ids=lambda each: next(iter(each)))
def test_strange_reasons_are_refused_from_elsewhere_and_from_subjects(strange: dict[str, Any]):
    raw = msgspec.to_builtins(Explained(op_count=1_005, profiled_s=1.0)) | strange
    run = msgspec.to_builtins(synthetic.run(ID, ("batched.xla", "loop.eager"), unhappy=False))
    run["measurements"][0]["why"] = raw
    with pytest.raises(ValueError, match=r"not a valid run file.* - at `\$\.measurements\[0\]\.why"):
        imports.read(msgspec.json.encode(run))
    if "surprise" not in strange:  # a field that there is not is not taken in
        with pytest.raises(messages.ProtocolError, match=r"not a message"):
            messages.read({"event": "why", "why": raw})


def test_reasons_that_are_valid_come_in_with_any_text():
    hostile = replace(GRAPH, ops=ran((HOSTILE, 1, 0.0)), fallbacks=[HOSTILE])
    run = synthetic.run(ID, ("batched.xla",), unhappy=False)
    run = replace(run, measurements=[replace(run.measurements[0], why=hostile), run.measurements[1]])
    assert imports.read(encode(run)) == run
    said = {name: value for name, value in asdict(hostile).items() if value is not msgspec.UNSET}
    raw = msgspec.to_builtins(run.measurements[0].why)
    assert messages.read({"event": "why", "why": raw}).why == Explained(**said)


def test_the_store_keeps_reasons_and_artifacts_with_their_run(tmp_path: Path):
    kept = store.Store(tmp_path)
    run = synthetic.run(ID, ("batched.xla", "loop.eager"))
    kept.save(run, owner="me")
    before = kept.look(ID)
    assert kept.explain(ID, "loop.eager", EXPLAINED, {why.GRAPH: b"a", why.TRACE: b"b" * 1_000})
    after = kept.look(ID)
    assert after.version > before.version and not after.live
    changed = [(a, b) for a, b in zip(before.run.measurements, after.run.measurements, strict=True) if a != b]
    assert [(a.strategy, replace(b, why=a.why) == a) for a, b in changed] == [("loop.eager", True)]
    assert replace(after.run, measurements=[]) == replace(before.run, measurements=[])
    assert kept.artifacts(ID, "loop.eager") == [why.GRAPH, why.TRACE] and kept.artifacts(ID, "batched.xla") == []
    assert kept.artifact(ID, "loop.eager", why.TRACE) == b"b" * 1_000
    kept.explain(ID, "loop.eager", EXPLAINED, {why.HLO: b"c"})
    assert kept.artifacts(ID, "loop.eager") == [why.HLO], "a second explanation replaces the first"
    kept.delete([ID])
    assert kept.artifacts(ID, "loop.eager") == []
    assert not kept.explain(ID, "loop.eager", EXPLAINED, {}) and kept.load(ID) is None


def test_artifacts_are_those_that_are_known_and_not_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, size in ((why.GRAPH, 10), (why.HLO, 11), ("other.txt", 1)):
        (tmp_path / name).write_bytes(b"x" * size)
    monkeypatch.setattr(why, "MOST_ARTIFACT_BYTES", 10)
    assert why.artifacts(tmp_path) == {why.GRAPH: b"x" * 10}
