"""A function of a person's own on the command line: from a file to a verdict, and what is refused beforehand."""

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from measure import __main__ as command_line
from measure.arguments import given, parser
from measure.engine.bench import Settings
from measure.engine.deriving import Busy, Deriving
from measure.engine.dialogue import Dialogues
from measure.engine.host_launcher import HostLauncher
from measure.engine.machine_lock import machine_lock
from measure.model.request import parse
from measure.model.run import Run
from measure.model.run_file import decode
from measure.store.store import Store
from measure.sweep.comparison import PointComparison
from tests import forked
from tests.engine import DEADLINE_S, ROOT, environment
from tests.functions import CODE
from workloads import functions
from workloads.functions import Given


@pytest.fixture
def code(tmp_path: Path) -> Path:
    path = tmp_path / "my_code.py"
    path.write_text(CODE)
    return path


def measured(tmp_path: Path, command: str, *arguments: str) -> Run:
    """The run of a command that measures, with one second a budget."""
    file = tmp_path / "run.json"
    done = forked.start(
        command, *arguments, "--budget", "1", "--json", str(file), "--quiet",
        cwd=ROOT, env=environment(MAPBENCH_HOME=str(tmp_path / "home"), MAPBENCH_LOCK=str(tmp_path / "lock")),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    _, said = done.communicate(timeout=DEADLINE_S)
    assert done.returncode == 0, said
    return decode(file.read_bytes())


def outcomes(run: Run) -> dict[str, str]:
    return {item.strategy: item.outcome for item in run.measurements if item.twin_of is None}


def test_a_rewrite_a_reference_and_elements_from_a_file_can_be_added(tmp_path: Path, code: Path):
    code.write_text(
        CODE
        + "\n\ndef contrast_of_all(batch):\n    return tf.image.adjust_contrast(batch, 2.0)\n"
        + "\n\ndef right(batch):\n    mean = batch.astype(np.float64).mean(axis=(1, 2), keepdims=True)\n"
        + "    return (batch - mean) * 2 + mean\n"
    )
    np.save(tmp_path / "images.npy", np.random.default_rng(0).random((5, 4, 4, 3), dtype=np.float32))
    arguments = [f"{code}:contrast", "--elems", str(tmp_path / "images.npy"), "--batched", "contrast_of_all"]
    strategies = ["--strategies", "map_fn.graph,batched.graph", "--size", "batch=7"]
    run = measured(tmp_path, "compare", *arguments, "--reference", "right", *strategies)
    assert outcomes(run) == {"map_fn.graph": "ok", "batched.graph": "ok"}
    assert run.request.own.facts.reference == "given"  # type: ignore[union-attr]
    assert str(tmp_path) not in run.request.own.given.code  # type: ignore[union-attr]


def test_a_point_between_those_of_a_grid_has_facts_of_its_own(host: HostLauncher, monkeypatch: pytest.MonkeyPatch):
    for known in ("_known", "_workloads"):
        monkeypatch.setattr(functions, known, {})
    slug = Deriving(host, "a test", patient=True).give(Given(code=CODE, function="contrast", elems="images"), {}, 0)
    asked = parse({"workload": slug, "size": {"batch": 2, "side": 5}, "strategies": "map_fn.graph"})
    assert functions.get(slug, asked.size) is None
    PointComparison("a", asked, host, lambda view: None, Dialogues(host), Settings())
    known = functions.get(slug, asked.size)
    assert known is not None
    assert known.facts.size == {"batch": 2, "side": 5}


def test_a_page_does_not_wait_for_whoever_measures(host: HostLauncher):
    given = Given(code="x = [1.0]\n\n\ndef f(x):\n    return x", function="f", elems="x")
    with (
        machine_lock("a neighbour", lambda: False, lambda who: None),
        pytest.raises(Busy, match=r"^a neighbour \(process \d+\) is measuring on this machine"),
    ):
        Deriving(host, "a test", patient=False).give(given, {}, 0)


@pytest.mark.parametrize(
    ("elems", "expected"),
    [
        pytest.param("{folder}/my_code.py:images", np.arange(3.0), id="a name with its file"),
        pytest.param("{folder}/pair.npz", {"a": np.arange(4.0), "b": np.ones((4, 2))}, id="a file of several arrays"),
        pytest.param("{folder}/one.npy", np.arange(4.0), id="a file of one array"),
    ],
)
def test_elements_are_those_that_are_named(
    tmp_path: Path, code: Path, elems: str, expected: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path / "home"))
    code.write_text("import numpy as np\n\nimages = np.arange(3.0)\n\n\ndef contrast(x):\n    return x\n")
    np.savez(tmp_path / "pair.npz", a=np.arange(4.0), b=np.ones((4, 2)))
    np.save(tmp_path / "one.npy", np.arange(4.0))
    named = ["compare", f"{code}:contrast", "--elems", elems.format(folder=tmp_path)]
    asked = given(parser().parse_args(named))
    assert asked is not None
    assert asked.function == "contrast"
    space: dict[str, Any] = {}
    exec(asked.code, space)
    np.testing.assert_equal(space[asked.elems], expected)


def test_a_size_of_the_elements_can_be_swept(tmp_path: Path, code: Path):
    run = measured(
        tmp_path, "sweep", f"{code}:contrast", "--elems", "images", "--size", "side=4,6", "--strategies", "map_fn.graph"
    )
    shapes = [item.correctness.leaves[0].shape for point in run.points for item in point.measurements]  # type: ignore[union-attr]
    assert shapes == [[16, 4, 4, 3], [16, 6, 6, 3]]
    # The function is known from the sweep that is continued.
    continued = measured(tmp_path, "sweep", "--continue", run.id)
    assert continued.parent == run.id
    assert continued.request == run.request
    assert [item.code for point in continued.points for item in point.measurements] == [
        item.code for point in run.points for item in point.measurements
    ]
    kept = Store(tmp_path / "home")
    kept.delete([run.id])
    kept.add(run)
    with pytest.raises(AssertionError, match="comes from elsewhere"):
        measured(tmp_path, "sweep", "--continue", run.id)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["{code}:flip"], "what flip is mapped over is missing: name it by --elems"),
        (["square", "--elems", "images"], "--elems goes with a function of your own: name it as FILE.py:FUNCTION"),
        (["{code}:", "--elems", "images"], "is not valid: write FILE.py:FUNCTION"),
        (["{code}x.py:flip", "--elems", "images"], "cannot be read: No such file or directory"),
        (["{code}:flip", "--elems", "other.py:images"], "--elems other.py:images is in another file than flip"),
        (["{code}:flip", "--elems", "no_such.npy"], "no_such.npy cannot be read: No such file or directory"),
    ],
)
def test_what_is_wrong_is_said_before_anything_starts(
    code: Path, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def start(**_: Any) -> None:
        raise AssertionError("a runner was started")

    monkeypatch.setattr("measure.runner.Runner", start)
    status = command_line.main(["compare", *(part.format(code=code) for part in arguments)])
    assert status == command_line.INVALID
    assert sentence in capsys.readouterr().err
