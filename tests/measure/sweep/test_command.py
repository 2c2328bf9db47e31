"""``python -m measure sweep``."""

from pathlib import Path

import pytest

from measure import __main__ as command
from measure import runner
from measure.model.run_file import decode


def test_the_command_refuses_what_cannot_be_swept(capsys: pytest.CaptureFixture[str]):
    for arguments, says in (
        (["square"], "nothing is swept"),
        (["square", "--size", "batch=4"], "nothing is swept"),
        (["square", "--size", "batch=9:1"], "is reversed"),
        (["square", "--size", "batch=1:9", "--size", "batch=2"], "gives batch twice"),
        (["square", "--size", "batch=1:9", "--scale", "cubic"], "scale 'cubic' is not valid"),
        (["square", "--continue", "0" * 24], "leave them out"),
        (["square", "--size", "batch=1:9", "--strategies", "loop", "--pair", "loop.xla", "map_fn.graph"],
         "--pair names 'map_fn.graph', which is not swept: loop.eager, loop.graph, loop.xla are"),
        (["outer_product", "--size", "batch=1:9", "--size", "side=1:9", "--pair", "loop.eager", "loop.xla"],
         "sweep one size or option, not two"),
        (["--continue", "0" * 24], "is not known here"),
    ):  # fmt: skip
        assert command.main(["sweep", *arguments]) == command.INVALID
        assert says in capsys.readouterr().err


def test_the_command_sweeps_an_option_whose_default_is_among_its_values(
    own: runner.Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("measure.runner.Runner", lambda name: own)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    file = tmp_path / "sweep.json"
    arguments = ["--size", "batch=8", "--option", "parallel_iterations=1,10,32", "--json", str(file)]
    chosen = ["--strategies", "map_fn.graph,batched.eager", "--pair", "map_fn.graph", "batched.eager"]
    unknown = ["--strategies", "batched.eager,hangs_at_no_size.eager"]
    assert command.main(["sweep", "square", *unknown, *arguments]) == command.INVALID
    capsys.readouterr()
    assert command.main(["sweep", "square", *chosen, *arguments]) == command.MEASURED
    run, said = decode(file.read_bytes()), capsys.readouterr()
    assert said.err.index("forecast: about ") < said.err.index("parallel_iterations=10: ")
    assert [(axis.kind, axis.name, axis.values) for axis in run.axes] == [
        ("option", "parallel_iterations", [1, 10, 32])
    ]
    of_map_fn = [point.measurements[0] for point in run.points]
    assert [item.strategy for item in of_map_fn] == [
        "map_fn.graph?parallel_iterations=1", "map_fn.graph", "map_fn.graph?parallel_iterations=32"
    ]  # fmt: skip
    assert [point.ranking[0] for point in run.points[1:]] == [[item.strategy] for item in of_map_fn[1:]]
    assert [item.options for item in of_map_fn] == [{"parallel_iterations": 1}, {}, {"parallel_iterations": 32}]
    assert ["parallel_iterations=1" in item.code.source for item in of_map_fn] == [True, False, False]
    assert [len(point.measurements) for point in run.points] == [2, 1, 1], "what does not have it is measured once"
    assert run.verdict.startswith("batched.eager is fastest: ") and run.verdict in said.out
    assert "; map_fn.graph with parallel_iterations " in run.verdict
    assert "They do not cross between parallel_iterations 1 and 32: batched.eager is " in said.out
    again = ["--option", "parallel_iterations=1,10", "--strategies", "batched.eager"]
    assert command.main(["sweep", "square", *again]) == command.INVALID
    assert "no chosen strategy has an option 'parallel_iterations'" in capsys.readouterr().err
