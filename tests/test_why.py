"""Why a strategy is as fast as it is: traces, programs, sentences, the job that explains, and the tab that shows it."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure import imports, runner, store, trace, why, why_hlo, why_job
from measure.comparison import Comparison
from measure.dialogue import Dialogues, SubjectFailed
from measure.request import RequestError
from measure.run import AtPeak, Error, Memory, Run, encode
from measure.runner import Snapshot
from measure.said import is_well_formed
from measure.statistics import Ratio
from measure.why import Fusion, Graph, Ran, Why
from tests import synthetic
from tests.benchmarks.why import Explained
from tests.engine import DEADLINE_S, ROOT, measure, running, running_host, small_request
from tests.synthetic import HOSTILE, MIB, OUTPUT

ID = "0123456789abcdef01234567"

# --- the profiler's trace --------------------------------------------------------------------------------------------


def space(*planes: tuple[str, list[tuple[str, list[tuple[Any, ...]]]]]) -> Any:
    """An XSpace of planes with lines of events: name, start and length in microseconds, statistics."""
    from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

    made = XSpace()
    for plane_name, lines in planes:
        plane = made.planes.add(name=plane_name)
        names: dict[str, int] = {}
        stats: dict[str, int] = {}
        for line_name, events in lines:
            line = plane.lines.add(name=line_name, timestamp_ns=1_000)
            for name, start, length, *more in events:
                key = names.setdefault(name, len(names) + 1)
                plane.event_metadata[key].name = name
                event = line.events.add(metadata_id=key, offset_ps=round(start * 1e6), duration_ps=round(length * 1e6))
                for stat, value in (more[0] if more else {}).items():
                    number = stats.setdefault(stat, len(stats) + 1)
                    plane.stat_metadata[number].name = stat
                    event.stats.add(metadata_id=number, str_value=value)
    return made


def profiled(*planes: tuple[str, list[tuple[str, list[tuple[Any, ...]]]]]) -> trace.Profile:
    return trace.profile(trace.read(space(*planes)))


def counts(shares: tuple[trace.Share, ...]) -> dict[str, int]:
    return {share.name: share.count for share in shares}


def test_eager_ops_last_as_long_as_their_kernels_and_the_rest_is_pythons_or_the_runtimes():
    op = "EagerLocalExecute: "
    found = profiled(
        ("/host:CPU", [("python", [
            (trace.CALL, 10, 100),
            ("convert_to_tensor", 11, 8),  # Python's own, but for the op in it
            ("EagerExecute", 12, 4), (f"{op}_EagerConst", 12, 4), ("KernelAndDeviceFunc::Run", 13, 1),
            ("TFE_Py_FastPathExecute_C", 30, 20), (f"{op}Mul", 32, 10), ("KernelAndDeviceFunc::Run", 35, 5),
            (f"{op}__inference_f_7", 60, 10), ("KernelAndDeviceFunc::Run", 62, 3),
            (f"{op}Late", 200, 10),
        ])]),
    )  # fmt: skip
    assert counts(found.ops) == {"Mul": 1, "EagerConst": 1}
    assert found.in_ops_s == pytest.approx(6e-6)
    assert found.runtime_s == pytest.approx(34e-6) and found.python_s == pytest.approx(66e-6)
    assert found.threads == 1


def test_ops_of_a_graph_are_counted_on_all_threads_and_overlaps_once():
    found = profiled(
        ("/host:CPU", [
            ("python", [(trace.CALL, 0, 100), ("TFE_Py_ExecuteCancelable", 10, 80),
                        ("tf.function-graph_building", 2, 6)]),
            ("a", [("ExecutorState::Process", 20, 30), ("map/while/body/_1/map/while/mul:Mul", 20, 10),
                   ("x:While", 20, 70), ("plain: text", 20, 1), ("name::Other", 20, 1), ("c:PyFunc", 95, 5)]),
            ("b", [("y:Mul", 25, 10), ("ExecutorState::ProcessAsync::Start", 40, 5, {"kernel_type": "Iterate"})]),
        ]),
    )  # fmt: skip
    assert counts(found.ops) == {"Mul": 2, "While": 1, "PyFunc": 1, "Iterate": 1}
    assert found.in_ops_s == pytest.approx((15 + 5 + 5) * 1e-6), "a loop's time is that of its ops"
    assert found.building_s == pytest.approx(6e-6) and found.python_s == pytest.approx(14e-6)
    assert found.threads == 2


def test_kernels_are_the_innermost_of_xla_and_the_streams_of_a_gpu():
    hlo = {"hlo_op": "x"}
    found = profiled(
        ("/host:CPU", [("python", [(trace.CALL, 0, 100), ("while", 10, 50, hlo), ("fusion", 12, 5, hlo),
                                   ("end: fusion", 17, 1), ("fusion", 20, 5, hlo)])]),
        ("/device:GPU:0", [("Stream #7(Compute)", [("gemm", 30, 10, hlo), ("gemm", 90, 20), ("MemcpyH2D", 60, 5),
                                                      ("Memset", 70, 5)]),
                           ("XLA Ops", [("dot", 30, 10, hlo)])]),
    )  # fmt: skip
    assert counts(found.kernels) == {"fusion": 2, "gemm": 2} and not found.ops
    assert found.in_kernels_s == pytest.approx(40e-6)
    assert found.threads == 1, "a stream is not a thread"


def test_of_several_marked_calls_the_quickest_counts_and_without_one_there_is_nothing():
    made = space(
        ("/host:CPU", [("python", [(trace.CALL, 0, 50), ("a:Mul", 5, 1), (trace.CALL, 100, 40), ("b:Add", 105, 1)])])
    )
    assert counts(trace.profile(trace.read(made)).ops) == {"Add": 1}
    with pytest.raises(ValueError, match="did not see the call"):
        trace.read(space(("/host:CPU", [("python", [("a:Mul", 5, 1)])])))


def test_the_trace_opens_in_perfetto():
    made = trace.read(
        space(
            ("/host:CPU", [("python", [(trace.CALL, 0, 50), ("a:Mul", 5, 2, {"shape": HOSTILE}), ("b:Add", 9, 1)])]),
            ("/device:GPU:0", [("Stream #1", [("gemm", 10, 3)])]),
        )
    )
    document = json.loads(gzip.decompress(trace.chrome(made, "map_fn.graph")))
    spans = {event["name"]: event for event in document["traceEvents"] if event["ph"] == "X"}
    assert spans["a:Mul"]["ts"] == 5.0 and spans["a:Mul"]["dur"] == 2.0 and spans["a:Mul"]["args"] == {"shape": HOSTILE}
    assert spans["gemm"]["pid"] != spans["a:Mul"]["pid"]
    names = [event["args"]["name"] for event in document["traceEvents"] if event["ph"] == "M"]
    assert names == ["map_fn.graph /host:CPU", "map_fn.graph /device:GPU:0", "python", "Stream #1"]
    cut = json.loads(gzip.decompress(trace.chrome(made, "x", most=2)))
    assert cut["otherData"] == {"events left out": 2}
    assert trace.chrome(made, "x") == trace.chrome(made, "x")


# --- XLA's program ---------------------------------------------------------------------------------------------------

HLO = """HloModule m, is_scheduled=true, entry_computation_layout={(f32[5]{0})->f32[5]{0}}

FileNames
1 "/home/somebody/x.py"

%fused_computation (param_0: f32[5]) -> f32[5] {
  %param_0 = f32[5]{0} parameter(0)
  %c = f32[] constant(2), metadata={op_type="Mul" source_file="/home/somebody/x.py" source_line=7}
  %b = f32[5]{0} broadcast(%c), dimensions={}
  %m = f32[5]{0} multiply(%b, %param_0), metadata={op_type="Mul" op_name="mul" source_file="/home/x.py" source_line=7}
  ROOT %a = f32[5]{0} add(%m, %param_0)
}

%filled (param_1: f32[]) -> f32[5] {
  %param_1 = f32[] parameter(0)
  ROOT %w = f32[5]{0} broadcast(%param_1), dimensions={}
}

%compare (x: f32[], y: f32[]) -> pred[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %lt = pred[] compare(%x, %y), direction=LT
}

%body (arg: (s32[], f32[5])) -> (s32[], f32[5]) {
  %arg = (s32[], f32[5]{0}) parameter(0)
  %g = f32[5]{0} get-tuple-element(%arg), index=1
  ROOT %t = (s32[], /*index=1*/f32[5]{0}) tuple(%arg, %g)
}

ENTRY %main (arg0: f32[5]) -> f32[5] {
  %arg0 = f32[5]{0} parameter(0)
  %add_fusion = f32[5]{0} fusion(%arg0), kind=kLoop, calls=%fused_computation
  %fill = f32[5]{0} fusion(%arg0), kind=kLoop, calls=%filled
  %s = f32[5]{0} sort(%add_fusion), dimensions={0}, to_apply=%compare
  %k = (f32[2]{0}, s32[2]{0}) custom-call(%s), custom_call_target="TopK", called_computations={%compare}
  ROOT %w.1 = (s32[], /*index=1*/f32[5]{0}) while(%k), condition=%compare, body=%body
}
"""


def test_a_program_is_its_fusions_what_is_outside_of_them_and_its_loops():
    found = why_hlo.parse(HLO)
    assert found.fusions == (
        why_hlo.Fusion("add_fusion", ("multiply", "add")), why_hlo.Fusion("fill", ("broadcast",)),
    )  # fmt: skip
    assert found.others == ("sort", "custom-call") and found.loops == 1
    assert why_hlo.parse("") == why_hlo.Program((), (), 0) == why_hlo.parse(HOSTILE)


def test_no_path_of_a_machine_is_in_a_program():
    clean = why_hlo.without_paths(HLO)
    assert "/home" not in clean and 'op_name="mul"' in clean
    assert why_hlo.parse(clean) == why_hlo.parse(HLO)
    assert "metadata" not in why_hlo.comparable(clean)


# --- sentences -------------------------------------------------------------------------------------------------------

MS = 1e-3


def ran(*rows: tuple[str, int, float]) -> list[Ran]:
    return [Ran(name=name, count=count, seconds=seconds) for name, count, seconds in rows]


def explained(slug: str, found: Why, outcome: str = "ok", error: str = "", memory: Memory | None = None) -> Any:
    item = synthetic.failure(*slug.split("."), outcome, error)
    return replace(item, why=why.written(found), memory=memory)


EAGER = Why(call_s=10 * MS, profiled_s=10 * MS, python_s=9.3 * MS, op_count=300, in_ops_s=0.6 * MS,
            ops=ran(("Mul", 200, 0.4 * MS), ("Add", 100, 0.2 * MS)))  # fmt: skip
GRAPH = Why(call_s=2 * MS, profiled_s=4 * MS, python_s=0.2 * MS, op_count=1_005, in_ops_s=0.5 * MS,
            ops=ran(("Mul", 1_005, 0.5025 * MS)),
            graph=Graph(nodes=38, top_nodes=10, functions=2, by_op=ran(("StatelessWhile", 1, 0.0))))  # fmt: skip
FUSED = Why(call_s=0.1 * MS, profiled_s=0.2 * MS, kernel_count=1, in_kernels_s=0.09 * MS, loops=0, fusion_count=1,
            fused_ops=3, kernels=ran(("fusion", 1, 0.09 * MS)))  # fmt: skip


@pytest.mark.parametrize(
    ("slug", "found", "says"),
    [
        ("map_fn.eager", EAGER,
         "spends 93 % of its time in Python, and 1.0 % in starting ops, between 300 ops of 2.00 µs each"),
        ("batched.eager", replace(EAGER, python_s=1 * MS, in_ops_s=8.5 * MS, op_count=4),
         "spends 85 % of its time in 4 ops, most of it in `Mul`"),
        ("map_fn.graph", GRAPH,
         "runs a while loop in its graph: 1,005 ops of 500 ns each, and spends 75 % on scheduling them and calling "
         "the function"),
        ("loop.graph", replace(GRAPH, graph=Graph(nodes=643, top_nodes=643, functions=0), in_ops_s=1.5 * MS),
         "has 64 unrolled copies of the function in a graph of 643 nodes, and runs 1,005 ops, which take 75 % of its "
         "time, most of it in `Mul`"),
        ("batched.graph", Why(call_s=1 * MS, profiled_s=1 * MS, op_count=1, in_ops_s=1e-6, ops=ran(("Mul", 1, 1e-6))),
         "runs 1 op of 1.00 µs, and spends 100 % on calling the function"),
        ("vectorized_map.eager",
         replace(EAGER, traces_per_call=1, building_s=6 * MS, op_count=4, in_ops_s=0.01 * MS),
         "traces a function anew in every call: 60 % of its time goes into building graphs, and 0.1 % into 4 ops"),
        ("vectorized_map.graph", replace(GRAPH, fallbacks=["Where"]),
         "falls back to a while loop for `Where`, which `tf.vectorized_map` cannot vectorise, and runs 1,005 ops of "
         "500 ns each"),
        ("vectorized_map.xla", FUSED, "runs one fusion of 3 ops, one pass over memory: it takes 90 % of its time"),
        ("map_fn.xla",
         replace(FUSED, loops=1, fusion_count=4, fused_ops=10, kernel_count=3, in_kernels_s=0.001 * MS,
                 other_instructions=ran(("copy", 2, 0.0))),
         "runs 4 fusions of 10 ops and 2 further instructions (`copy`), 3 kernels a call, in a loop that XLA kept: "
         "99 % of its time is the fixed cost of a call"),
        ("counter.xla", Why(call_s=1 * MS, profiled_s=1 * MS, loops=0, op_count=1, ops=ran(("X", 1, 0.0))),
         "runs a program without work of its own"),
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
def test_what_takes_the_time_is_said_in_a_sentence(slug: str, found: Why, says: str):
    said = why.sentence(explained(slug, found), 64, None, None)
    assert said.startswith(f"`{slug}` {says}") and said.endswith(".") and said.count("..") == 0, said


def test_a_call_that_was_disturbed_does_not_make_its_ops_look_small():
    disturbed = replace(GRAPH, call_s=40 * MS, profiled_s=1 * MS, in_ops_s=0.8 * MS)
    assert "1,005 ops, which take 80 % of its time" in why.sentence(explained("a.graph", disturbed), 64, None, None)


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
    assert why.copies(explained("map_fn.graph", GRAPH, memory=memory)) == says


def test_the_gap_to_the_fastest_has_its_interval():
    best = explained("batched.xla", FUSED)

    def said(*ratio: float) -> str:
        return why.sentence(explained("map_fn.graph", GRAPH), 64, best, Ratio(*ratio, p=0.1))

    assert said(37.2, 35.0, 39.4).endswith("; that takes 37 × [35, 39] as long as `batched.xla` with its 1 kernel.")
    assert said(1.01, 0.98, 1.04).endswith("; that cannot be told apart from `batched.xla` with its 1 kernel.")
    unknown = replace(best, why={})
    assert why.sentence(explained("map_fn.graph", GRAPH), 64, unknown, Ratio(2.0, 1.9, 2.1, 0.0)).endswith(
        "; that takes 2.00 × [1.90, 2.10] as long as `batched.xla`."
    )


def test_no_strategy_is_without_a_sentence_whatever_became_of_it():
    run = synthetic.run(ID)
    items = [replace(item, why=why.written(GRAPH)) if item.strategy == "loop.eager" else item
             for item in run.measurements]  # fmt: skip
    said = why.sentences(replace(run, measurements=items))
    assert set(said) == {item.strategy for item in run.measurements if not item.twin_of}
    assert "as long as `batched.xla`" in said["loop.eager"]
    assert said["numpy_function.xla"] == "`numpy_function.xla` cannot run: XLA cannot compile tf.numpy_function."
    assert said["loop.xla"].startswith("`loop.xla` did not finish in its time, so there is no steady call to explain: ")
    assert said["map_fn.graph"] == "`map_fn.graph` has not been explained yet."
    failed = explained("map_fn.graph", Why(note="no answer within 9 s."), outcome="ok")
    assert why.sentence(failed, 64, None, None) == "`map_fn.graph` could not be explained: no answer within 9 s."
    dead = explained("a.graph", Why(note="the process aborted"), outcome="wrong")
    assert why.sentence(dead, 64, None, None).endswith("the process aborted; its values differ from the reference.")
    assert "its values differ" in why.sentence(explained("a.graph", GRAPH, outcome="wrong"), 64, None, None)


# --- what stands in a run --------------------------------------------------------------------------------------------


def test_what_a_comparison_knows_without_explaining_stays():
    before = {"runtime_start_s": 0.02}
    written = why.written(GRAPH, before)
    assert written["runtime_start_s"] == 0.02 and why.read(written).op_count == 1_005
    item = replace(synthetic.failure("a", "graph", "ok", ""), why=before)
    assert why.known(item) is None, "a run that was only timed is not explained"
    assert why.known(replace(item, why=written)) == why.read(written)


STRANGE = [
    {"op_count": -1}, {"op_count": 1.5}, {"call_s": float("inf")}, {"call_s": "long"}, {"surprise": 1},
    {"ops": [{"name": "x" * 201, "count": 1}]}, {"ops": [{"name": "x", "count": 1}] * 61}, {"ops": "many"},
    {"graph": {"nodes": 1}}, {"fusions": [{"name": "a", "ops": [1]}]}, {"note": "x" * 2_001}, {"fallbacks": [None]},
    {"cores": -0.5},
]  # fmt: skip


@pytest.mark.parametrize("strange", STRANGE, ids=lambda each: next(iter(each)))
def test_strange_reasons_are_refused_from_elsewhere_and_from_subjects_and_break_no_page(strange: dict[str, Any]):
    raw = why.written(GRAPH) | strange
    run = synthetic.run(ID, ("batched.xla", "loop.eager"), unhappy=False)
    items = [replace(run.measurements[0], why=raw), *run.measurements[1:]]
    strange_run = replace(run, measurements=items)
    with pytest.raises(ValueError, match=r"not a valid run file.* - at `\$"):
        imports.read(encode(strange_run))
    assert not is_well_formed({"event": "why", "why": raw})
    assert why.known(items[0]) is None
    assert why.sentences(strange_run)["batched.xla"] in (
        "`batched.xla` has not been explained yet.", f"`batched.xla` could not be explained: {raw['note']}."
    )  # fmt: skip


def test_reasons_that_are_valid_come_in_with_any_text():
    hostile = replace(GRAPH, ops=ran((HOSTILE, 1, 0.0)), fallbacks=[HOSTILE])
    run = synthetic.run(ID, ("batched.xla",), unhappy=False)
    run = replace(run, measurements=[replace(run.measurements[0], why=why.written(hostile)), run.measurements[1]])
    assert imports.read(encode(run)) == run
    assert is_well_formed({"event": "why", "why": why.written(hostile)})


def test_the_store_keeps_reasons_and_artifacts_with_their_run(tmp_path: Path):
    kept = store.Store(tmp_path)
    run = synthetic.run(ID, ("batched.xla", "loop.eager"))
    kept.save(run, owner="me")
    before = kept.look(ID)
    assert kept.explain(ID, "loop.eager", why.written(EAGER), {why.GRAPH: b"a", why.TRACE: b"b" * 1_000})
    after = kept.look(ID)
    assert after.version > before.version and not after.live
    changed = [(a, b) for a, b in zip(before.run.measurements, after.run.measurements, strict=True) if a != b]
    assert [(a.strategy, replace(b, why=a.why) == a) for a, b in changed] == [("loop.eager", True)]
    assert replace(after.run, measurements=[]) == replace(before.run, measurements=[])
    assert kept.artifacts(ID, "loop.eager") == [why.GRAPH, why.TRACE] and kept.artifacts(ID, "batched.xla") == []
    assert kept.artifact(ID, "loop.eager", why.TRACE) == b"b" * 1_000
    kept.explain(ID, "loop.eager", why.written(EAGER), {why.HLO: b"c"})
    assert kept.artifacts(ID, "loop.eager") == [why.HLO], "a second explanation replaces the first"
    kept.delete([ID])
    assert kept.artifacts(ID, "loop.eager") == []
    assert not kept.explain(ID, "loop.eager", why.written(EAGER), {}) and kept.load(ID) is None


def test_artifacts_are_those_that_are_known_and_not_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, size in ((why.GRAPH, 10), (why.HLO, 11), ("other.txt", 1)):
        (tmp_path / name).write_bytes(b"x" * size)
    monkeypatch.setattr(why, "MOST_ARTIFACT_BYTES", 10)
    assert why.artifacts(tmp_path) == {why.GRAPH: b"x" * 10}


# --- the job ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[runner.Runner]:
    folder = tmp_path_factory.mktemp("why")
    with running_host(folder) as launcher, running(launcher, folder) as own:
        yield own


SLUGS = ("loop.eager", "map_fn.graph", "batched.xla")


@pytest.fixture(scope="module")
def measured(own: runner.Runner) -> Run:
    return measure(own, small_request(*SLUGS, size={"batch": 100, "features": 2}))


def test_an_explanation_counts_what_ran_and_leaves_the_run_as_it_was(own: runner.Runner, measured: Run):
    assert all(why.known(item) is None for item in measured.measurements), "nothing is explained unless asked for"
    job = own.explain(measured.id)
    assert own.explain(measured.id) == job and own.snapshot(measured.id).state == "finished"
    assert own.wait(job, DEADLINE_S) and own.queue() == ()
    run = own.snapshot(measured.id).run
    assert replace(run, measurements=[]) == replace(measured, measurements=[])
    for item, before in zip(run.measurements, measured.measurements, strict=True):
        assert replace(item, why=before.why) == before
        assert item.why.get("runtime_start_s") == before.why.get("runtime_start_s")
    eager, graph, xla = (why.known(run.measurement(slug)) for slug in SLUGS)
    of = {row.name: row.count for row in graph.ops}
    # By the loop's own arithmetic: its condition is asked once more than its body runs. The executor would leave a
    # quick op out of a trace after some 90 runs.
    assert of["TensorListGetItem"] == 200 and of["LogicalAnd"] == 101 and of["TensorListSetItem"] == 200
    assert graph.tracing_count == 1 and graph.traces_per_call == 0 and graph.graph.functions >= 2
    assert {row.name for row in eager.ops} >= {"StridedSlice", "Pack"} and eager.graph is None
    assert eager.op_count > 1_000 and 0 < eager.in_ops_s < eager.profiled_s and eager.python_s > 0
    assert xla.kernel_count >= 1 and xla.fusion_count >= 1 and xla.loops == 0 and not xla.op_count
    assert own.store.artifacts(run.id, "loop.eager") == [why.TRACE]
    assert own.store.artifacts(run.id, "batched.xla") == [why.GRAPH, why.HLO, why.TRACE]
    assert "fusion" in own.store.artifact(run.id, "batched.xla", why.HLO).decode()
    assert "= While(" in own.store.artifact(run.id, "map_fn.graph", why.GRAPH).decode()
    assert json.loads(gzip.decompress(own.store.artifact(run.id, "map_fn.graph", why.TRACE)))["traceEvents"]
    assert len(why.sentences(run)) == 3 and "yet" not in " ".join(why.sentences(run).values())


def test_with_why_a_comparison_explains_in_the_end(own: runner.Runner):
    run_id = own.submit(small_request("batched.graph"), why=True)
    assert own.wait(run_id, DEADLINE_S)
    run = own.snapshot(run_id).run
    assert run.status == "complete" and run.verdict and why.known(run.measurement("batched.graph")).op_count
    assert why.TRACE in own.store.artifacts(run_id, "batched.graph")


def test_what_cannot_be_explained_here_is_said(own: runner.Runner, measured: Run):
    details = own.host().details
    assert why_job.refusal(measured, details, imported=False) is None
    assert "comes from elsewhere" in why_job.refusal(measured, details, imported=True)
    elsewhere = replace(measured, environment={"cpu_model": "another"})
    assert "another machine" in why_job.refusal(elsewhere, details, imported=False)
    with pytest.raises(RequestError, match="when it has ended"):
        own.explain("f" * 24)
    other = replace(
        measured,
        id="e" * 24,
        measurements=[replace(item, code=replace(item.code, source="print(1)")) for item in measured.measurements],
    )
    own.store.save(other)
    with pytest.raises(RequestError, match=r"the code of loop\.eager has changed"):
        own.explain(other.id)


def test_a_failure_longer_than_a_note_leaves_a_reason_that_can_be_read():
    class Failing(Dialogues):
        def hold(self, dialogues: Any, **more: Any) -> None:
            for dialogue in dialogues:
                list(dialogue)

        def start(self, spec: Any) -> int:
            return 1

        def until(self, *more: Any) -> Any:
            raise SubjectFailed("failed", Error(type="Exit", message="x" * 5_000))

    def keep(slug: str, raw: dict[str, Any], artifacts: dict[str, bytes]) -> bool:
        kept.append(why.read(raw))
        return True

    kept: list[Why] = []
    launcher: Any = SimpleNamespace(start_method="fork")
    asked = small_request("batched.graph")
    job = Comparison(ID, asked, launcher, lambda view: None, dialogues=Failing(launcher), keep=keep)
    job._record.update("batched.graph", outcome="ok")
    job._open(0.0)
    job._explain()
    job._remove_files()
    assert [each.note for each in kept] == ["x" * why.MOST_NOTE]


def test_a_run_that_is_deleted_meanwhile_does_not_come_back(own: runner.Runner):
    run = measure(own, small_request("batched.eager"))
    job = own.explain(run.id)
    own.delete([run.id])
    assert own.wait(job, DEADLINE_S)
    assert own.snapshot(run.id) is None and not own.snapshot(job).fault


def test_the_benchmark_of_the_reasons_measures_what_it_explains(monkeypatch: pytest.MonkeyPatch):
    looked: list[str] = []
    for stage in ("_reference", "_explain"):
        monkeypatch.setattr(Comparison, stage, lambda self: None)
    monkeypatch.setattr(Comparison, "_memory_stage", lambda self, slugs: looked.extend(slugs))
    Explained(ID, small_request(*SLUGS), None, lambda view: None)._measure()
    assert looked == list(SLUGS)


# --- the tab ---------------------------------------------------------------------------------------------------------


class Fake:
    """The runner's side of the tab."""

    def __init__(self, run: Run, *, imported: bool = False) -> None:
        self.shown = Snapshot(run, "finished", version=next(_versions), imported=imported)
        self.job: Snapshot | None = None
        self.asked: list[str] = []
        self.refusal = ""
        self.store = self

    def snapshot(self, run_id: str) -> Snapshot | None:
        return self.shown if run_id == self.shown.run.id else None

    def queue(self) -> tuple[str, ...]:
        return ()

    def host(self) -> Any:
        from measure.processes import HostState

        return HostState("ready", "", ("CPU:0",))

    def explain(self, run_id: str) -> str:
        if self.refusal:
            raise RequestError(self.refusal)
        self.asked.append(run_id)
        self.job = Snapshot(self.shown.run, "running", message="explaining loop.eager, 1 of 2")
        return "a" * 24

    def explanation(self, run_id: str) -> tuple[str, Snapshot] | None:
        return ("a" * 24, self.job) if self.job else None

    def artifacts(self, run_id: str, slug: str) -> list[str]:
        return [why.GRAPH, why.TRACE]

    def artifact(self, run_id: str, slug: str, name: str) -> bytes | None:
        return HOSTILE.encode()


_versions = iter(range(1_000, 2_000))


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    def open_page(fake: Fake, **params: str) -> AppTest:
        monkeypatch.setattr(runner, "shared", lambda: fake)
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        for name, value in {"run": ID, "tab": "Why", **params}.items():
            app.query_params[name] = value
        return calm(app.run())

    return open_page


def calm(app: AppTest) -> AppTest:
    assert not app.exception and not app.error, [*app.exception, *app.error]
    return app


def words(app: AppTest) -> str:
    kinds = ("markdown", "caption", "html", "warning")
    found = " ".join(str(element.value) for kind in kinds for element in app.get(kind))
    return found.replace("\\", "").replace("\u2060", "").replace("\u00a0", " ")


def with_reasons(found: Why) -> Run:
    run = synthetic.run(ID, ("batched.xla", "loop.eager"), unhappy=False)
    return replace(run, measurements=[replace(item, why=why.written(found)) for item in run.measurements])


def test_the_tab_asks_only_when_it_is_told_to_and_then_shows_how_far_it_is(visit: Callable[..., AppTest]):
    fake = Fake(synthetic.run(ID, ("batched.xla", "loop.eager"), unhappy=False))
    app = visit(fake)
    assert not fake.asked
    app = calm(app.button(key="explain").click().run())
    assert fake.asked == [ID] and "explaining loop.eager, 1 of 2" in words(app)
    assert app.button(key="cancel_why") is not None


def test_the_tab_says_why_a_run_cannot_be_explained(visit: Callable[..., AppTest]):
    fake = Fake(synthetic.run(ID, ("batched.xla",), unhappy=False))
    fake.refusal = "the code of batched.xla has changed"
    app = calm(visit(fake).button(key="explain").click().run())
    assert "The code of batched.xla has changed." in words(app)
    imported = visit(Fake(synthetic.run(ID, ("batched.xla",), unhappy=False), imported=True))
    assert "«Measure again here» gives one" in words(imported)
    assert not [button for button in imported.button if button.key == "explain"]


def test_the_tab_shows_sentences_figures_and_artifacts(visit: Callable[..., AppTest]):
    app = visit(Fake(with_reasons(GRAPH)))
    assert "runs a while loop in its graph: 1,005 ops" in words(app)
    (figures,) = (each.value for each in app.dataframe if "profiled" in each.value.columns)
    assert figures["between ops"].tolist() == pytest.approx([4 - 0.5 - 0.2] * 2)
    assert {element.label for element in app.get("download_button")} >= {"Graph", "Trace"}


def test_what_failed_to_be_explained_can_be_asked_for_again(visit: Callable[..., AppTest]):
    run = with_reasons(GRAPH)
    failed = replace(run.measurements[0], why=why.written(Why(note="no answer within 9 s")))
    fake = Fake(replace(run, measurements=[failed, *run.measurements[1:]]))
    app = visit(fake)
    assert "1 of 2 strategies are explained." in words(app) and "no answer within 9 s" in words(app)
    calm(app.button(key="explain").click().run())
    assert fake.asked == [ID]


def test_hostile_reasons_stay_texts(visit: Callable[..., AppTest]):
    evil = replace(
        GRAPH, ops=ran((HOSTILE, 1_005, 1.0)), fallbacks=[HOSTILE], note=HOSTILE, loops=1, fusion_count=1,
        fusions=[Fusion(name=HOSTILE, ops=(HOSTILE,))], other_instructions=ran((HOSTILE, 3, 0.0)),
    )  # fmt: skip
    app = visit(Fake(with_reasons(evil), imported=True))
    assert "&lt;img" in words(app) and "<img" not in words(app)


@pytest.mark.parametrize("strange", [*STRANGE, {"note": 7}], ids=lambda each: next(iter(each)))
def test_strange_reasons_break_no_tab(visit: Callable[..., AppTest], strange: dict[str, Any]):
    run = with_reasons(GRAPH)
    items = [replace(run.measurements[0], why=run.measurements[0].why | strange), *run.measurements[1:]]
    visit(Fake(replace(run, measurements=items), imported=True))
