"""What the further mappers need of the engine: limits, choices, the memory of NumPy, and workloads of one's own."""

from measure.pool.launcher import Launcher
from measure.run.request import parse
from measure.run.run import Run
from tests.grid import untimed
from tests.subjects import Subjects


def outcomes(launcher: Launcher, **request: object) -> Run:
    return untimed(parse(request), launcher)


def test_chunks_take_little_memory_and_say_why(host: Launcher) -> None:
    """256 elements with 16⁴ products of 4 bytes each: 64 MiB for all, 0.25 MiB for each, of which 39 fit a chunk."""
    chosen = ["vectorized_map.graph", "chunked.graph", "chunked.graph?chunk=2"]
    run = outcomes(host, workload="outer_reduce", size={"batch": 256, "side": 16}, strategies=chosen)
    peaks = {item.strategy: item.memory.peak_bytes for item in run.measurements if item.memory}
    products = 4 * 16**4
    assert 256 * products <= peaks["vectorized_map.graph"] < 256 * products + 2**20
    # What is left over is vectorised beside the last whole chunk.
    assert 39 * products <= peaks["chunked.graph"] < (39 + 22 + 2) * products
    assert 2 * products <= peaks["chunked.graph?chunk=2"] < 2 * products + 2**19
    by_slug = {item.strategy: item for item in run.measurements}
    (choice,) = by_slug["chunked.graph"].warnings
    assert (choice.code, choice.values) == ("chosen", {"chunk": 39})
    assert by_slug["chunked.graph?chunk=2"].warnings == []


def test_memory_of_numpy_is_seen_by_python(host: Launcher) -> None:
    chosen = ["numpy_batched.eager", "numpy_function.graph"]
    run = outcomes(host, workload="outer_reduce", size={"batch": 64, "side": 16}, strategies=chosen)
    batched, called = (item.memory for item in run.measurements)
    products, output = 4 * 16**4, 64 * 4 * 16**2
    assert batched and called
    assert (batched.method, called.method) == ("tracemalloc", "events")
    assert 64 * products + output <= batched.peak_bytes < 64 * products + output + 2**19
    # Up to ten iterations are in flight, where there are cores for them.
    assert products <= called.peak_bytes < 10 * products + 3 * output + 2**20
    assert any(row.op == "NumPy and Python" for row in called.at_peak)


def test_what_cannot_work_is_not_started() -> None:
    subjects = Subjects()
    run = outcomes(subjects, workload="square", size={"batch": 4}, strategies=["dataset.xla", "numpy_function.xla"])
    for item in run.measurements:
        assert (item.outcome, item.stage, item.memory) == ("unsupported", "request", None)
        assert item.error is not None and item.error.message.startswith("XLA ")
    assert "memory" not in subjects.roles
