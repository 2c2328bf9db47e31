"""What the further mappers need of the engine: limits, choices, the memory of NumPy, and workloads of one's own."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

import workloads
from measure import runner
from measure.__main__ import main
from measure.engine import fresh_launcher
from measure.engine.bench import Settings
from measure.engine.host_launcher import HostLauncher
from measure.engine.launcher import Launcher
from measure.model.request import RequestError, parse
from measure.model.run import Run
from tests.grid import untimed
from tests.in_turn import InTurn
from tests.warm import WARM
from tests.workloads.test_workloads import CUBE


def outcomes(launcher: Launcher, **request: object) -> Run:
    return untimed(parse(request), launcher, Settings(timeout_floor_s=60.0))


def test_chunks_take_little_memory_and_say_why(host: HostLauncher) -> None:
    """256 elements with 16⁴ products of 4 bytes each: 64 MiB for all, 0.25 MiB for each, of which 39 fit a chunk."""
    chosen = ["vectorized_map.graph", "chunked.graph", "chunked.graph?chunk=2", "map_fn.graph?parallel_iterations=1"]
    run = outcomes(host, workload="outer_reduce", size={"batch": 256, "side": 16}, strategies=chosen)
    peaks = {item.strategy: item.memory.peak_bytes for item in run.measurements if item.memory}
    products = 4 * 16**4
    assert 256 * products <= peaks["vectorized_map.graph"] < 256 * products + 2**20
    # What is left over is vectorised beside the last whole chunk.
    assert 39 * products <= peaks["chunked.graph"] < (39 + 22 + 2) * products
    assert 2 * products <= peaks["chunked.graph?chunk=2"] < 2 * products + 2**19
    assert peaks["map_fn.graph?parallel_iterations=1"] < 2 * products + 2**19
    by_slug = {item.strategy: item for item in run.measurements}
    (choice,) = by_slug["chunked.graph"].warnings
    assert (choice.code, choice.values) == ("chosen", {"chunk": 39})
    assert "chunk=39 was chosen" in choice.message
    assert by_slug["chunked.graph?chunk=2"].warnings == []


def test_memory_of_numpy_is_seen_by_python(host: HostLauncher) -> None:
    chosen = ["numpy_batched.eager", "numpy.eager", "numpy_function.graph"]
    run = outcomes(host, workload="outer_reduce", size={"batch": 64, "side": 16}, strategies=chosen)
    memory = {item.strategy: item.memory for item in run.measurements}
    products, output = 4 * 16**4, 64 * 4 * 16**2
    batched, loop, called = (memory[slug] for slug in chosen)
    assert batched and loop and called
    assert (batched.method, loop.method, called.method) == ("tracemalloc", "tracemalloc", "events")
    assert 64 * products + output <= batched.peak_bytes < 64 * products + output + 2**18
    assert products <= loop.peak_bytes < products + 2 * output + 2**18
    assert products <= called.peak_bytes < products + 3 * output + 2**20
    assert any(row.op == "NumPy and Python" for row in called.at_peak)


def test_what_cannot_work_is_not_started(host: HostLauncher) -> None:
    run = outcomes(host, workload="square", size={"batch": 4}, strategies=["dataset.xla", "numpy_function.xla"])
    for item in run.measurements:
        assert (item.outcome, item.stage, item.memory) == ("unsupported", "request", None)
        assert item.error is not None and item.error.message.startswith("XLA ")


@pytest.mark.parametrize("batch", [0, 1])
def test_batches_of_none_and_of_one(host: HostLauncher, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two inputs and two outputs. Only tf.map_fn under XLA slices what is not there."""
    monkeypatch.setattr(fresh_launcher, "subprocess", WARM)
    request = {"workload": "per_example_gradients", "size": {"batch": batch, "features": 3}, "strategies": "all"}
    with contextlib.closing(InTurn(host)) as launcher:
        launcher.names = set(parse(request).strategies) - {"map_fn.xla"}
        run = outcomes(launcher, **request)
    wrong = {item.strategy: item.outcome for item in run.measurements if not (item.correctness and item.correctness.ok)}
    unsupported = {slug for slug, outcome in wrong.items() if outcome == "unsupported"}
    assert unsupported == {"dataset.xla", "dataset_batched.xla"}
    assert set(wrong) - unsupported == ({"map_fn.xla"} if batch == 0 else set())


def test_options_of_a_workload_decide_what_is_offered() -> None:
    request = {"workload": "per_example_gradients", "workload_options": {"model": "cnn"}, "strategies": "all"}
    assert not any(slug.startswith("batched") for slug in parse(request).strategies)
    with pytest.raises(RequestError, match="batched needs a rewrite 'batched', which per_example_gradients does not"):
        parse({**request, "strategies": "batched.graph"})


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """``python -m measure`` in this process, where it must not start anything: its status and what it prints."""
    monkeypatch.setenv(workloads.VARIABLE, "")  # a command that is given a file adds it for its process
    monkeypatch.setattr(runner, "Runner", None)

    def run(*arguments: object) -> tuple[int, str, str]:
        status = main(list(map(str, arguments)))
        return status, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("WORKLOAD = 1 / 0\n", "cannot be loaded: ZeroDivisionError: division by zero (line 1)"),
        (CUBE.replace('"cube"', '"square"'), "slug 'square' is taken already: choose another"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_a_broken_file_is_refused_with_its_error(
    command: Callable[..., tuple[int, str, str]], tmp_path: Path, text: str | None, message: str
) -> None:
    path = tmp_path / "own.py"
    if text is not None:
        path.write_text(text)
    says = f"error: {path}{':' if 'taken' in message else ''} {message}\n"
    assert command("compare", "--workload-file", path) == (2, "", says)


def test_another_name_than_the_files_is_refused(command: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "cube.py").write_text(CUBE)
    says = f"error: workload 'square' is not the one in {tmp_path / 'cube.py'}: that is 'cube'\n"
    assert command("compare", "square", "--workload-file", tmp_path / "cube.py") == (2, "", says)
