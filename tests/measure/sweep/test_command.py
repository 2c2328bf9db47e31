"""``python -m measure sweep``."""

from pathlib import Path

import pytest

from measure import __main__ as command
from measure.model.run_file import decode
from tests.engine import measure_here
from tests.measure.sweep.common import Sized, taking


def test_the_command_refuses_what_cannot_be_swept(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["square", "--size", "batch=1:9"]
    for arguments, says in (
        (["square", "--size", "batch=4"], "nothing is swept"),
        ([*line, "--size", "batch=2"], "gives batch twice"),
        ([*line, "--strategies", "batched.eager,unheard_of.eager"], "unheard_of"),
        ([*line, "--option", "chunk=1,10", "--strategies", "batched.eager"], "has an option 'chunk'"),
        (["square", "--continue", "0" * 24], "leave them out"),
        ([*line, "--strategies", "loop", "--pair", "loop.xla", "map_fn.graph"], "'map_fn.graph', which is not swept"),
        (["outer_product", "--size", "batch=1:9", "--size", "side=1:9", "--pair", "loop.eager", "loop.xla"],
         "sweep one size or option, not two"),
        (["--continue", "0" * 24], "is not known here"),
    ):  # fmt: skip
        assert command.main(["sweep", *arguments]) == command.INVALID
        assert says in capsys.readouterr().err


def test_the_command_sweeps_an_option_whose_default_is_among_its_values(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    measure_here(Sized(seconds=taking(map_fn=lambda n: 0.02)), monkeypatch)
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    file = tmp_path / "sweep.json"
    arguments = ["--size", "batch=8", "--option", "parallel_iterations=1,10,32", "--json", str(file)]
    chosen = ["--strategies", "map_fn.graph,batched.eager", "--pair", "map_fn.graph", "batched.eager"]
    assert command.main(["sweep", "square", *chosen, *arguments]) == command.MEASURED
    run, said = decode(file.read_bytes()), capsys.readouterr()
    assert "forecast: about " in said.err
    [axis] = run.axes
    assert (axis.kind, axis.name, axis.values) == ("option", "parallel_iterations", [1, 10, 32])
    of_map_fn = [point.measurements[0] for point in run.points]
    assert [(each.strategy, each.options) for each in of_map_fn] == [
        ("map_fn.graph?parallel_iterations=1", {"parallel_iterations": 1}),
        ("map_fn.graph", {}),
        ("map_fn.graph?parallel_iterations=32", {"parallel_iterations": 32}),
    ]
    assert ["parallel_iterations=1" in each.code.source for each in of_map_fn] == [True, False, False]
    assert [len(point.measurements) for point in run.points] == [2, 1, 1], "what does not have it is measured once"
    assert run.verdict.startswith("batched.eager is fastest: ") and run.verdict in said.out
    assert "batched.eager is faster throughout the range." in said.out, "about the pair"
