"""Functions of a person's own: given on the command line, refused beforehand, and measured as they are."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from measure import __main__ as command_line
from measure.arguments import given, parser
from measure.engine import stages
from measure.engine.deriving import Busy, Deriving
from measure.engine.host_launcher import HostLauncher
from measure.engine.machine_lock import machine_lock
from measure.model.request import RequestError, parse
from measure.model.run import Run
from measure.model.run_file import decode
from measure.runner import Runner
from measure.store.store import Store
from tests import synthetic
from tests.engine import Lent, measure, running
from tests.functions import CODE
from tests.measure.test_admission import measured_here, nobody_else_works
from workloads import functions
from workloads.functions import Given


@pytest.fixture
def code(tmp_path: Path) -> Path:
    path = tmp_path / "my_code.py"
    path.write_text(CODE)
    return path


@pytest.fixture
def _lent(host: HostLauncher, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands in this process, with a host that is there."""
    for known in ("_known", "_workloads"):
        monkeypatch.setattr(functions, known, {})
    measured_here(Lent(host), monkeypatch)
    monkeypatch.setattr("signal.signal", lambda *_: None)


def measured(tmp_path: Path, *arguments: str) -> Run:
    """The run of a command that measures."""
    file = tmp_path / "run.json"
    assert command_line.main([*arguments, "--budget", "300", "--json", str(file), "--quiet"]) == 0
    return decode(file.read_bytes())


@pytest.mark.usefixtures("_lent")
def test_a_rewrite_a_reference_and_elements_from_a_file_can_be_added(tmp_path: Path, code: Path):
    code.write_text(
        CODE
        + "\n\ndef contrast_of_all(batch):\n    return tf.image.adjust_contrast(batch, 2.0)\n"
        + "\n\ndef right(batch):\n    mean = batch.astype(np.float64).mean((1, 2), keepdims=True)\n"
        + "    return (batch - mean) * 2 + mean\n"
    )
    np.save(tmp_path / "images.npy", np.random.default_rng(0).random((5, 4, 4, 3), dtype=np.float32))
    arguments = [f"{code}:contrast", "--elems", str(tmp_path / "images.npy"), "--batched", "contrast_of_all"]
    strategies = ["--strategies", "map_fn.graph,batched.graph", "--size", "batch=7"]
    run = measured(tmp_path, "compare", *arguments, "--reference", "right", *strategies)
    outcomes = {item.strategy: item.outcome for item in run.measurements if item.twin_of is None}
    assert outcomes == {"map_fn.graph": "ok", "batched.graph": "ok"}
    assert run.request.own.facts.reference == "given"  # type: ignore[union-attr]
    assert str(tmp_path) not in run.request.own.given.code  # type: ignore[union-attr]


@pytest.mark.usefixtures("_lent")
def test_a_size_of_the_elements_can_be_swept(tmp_path: Path, code: Path):
    arguments = ["--elems", "images", "--size", "side=4,6", "--strategies", "map_fn.graph"]
    run = measured(tmp_path, "sweep", f"{code}:contrast", *arguments)
    items = [item for point in run.points for item in point.measurements if item.twin_of is None]
    shapes = [item.correctness.leaves[0].shape for item in items]  # type: ignore[union-attr]
    assert shapes == [[16, 4, 4, 3], [16, 6, 6, 3]]


def test_a_sweep_that_is_continued_brings_its_function_but_not_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    run = synthetic.of_function(synthetic.sweep())
    arguments = parser().parse_args(["sweep", "--continue", run.id])
    kept = Store(tmp_path)
    kept.save(replace(run, status="budget"))
    assert given(arguments) == run.request.own.given  # type: ignore[union-attr]
    kept.delete([run.id])
    kept.add(run)
    with pytest.raises(RequestError, match="comes from elsewhere"):
        given(arguments)


def test_a_page_does_not_wait_for_whoever_measures(host: HostLauncher):
    given = Given(code="x = [1.0]\n\n\ndef f(x):\n    return x", function="f", elems="x")
    with (
        machine_lock("a neighbour", lambda: False, lambda who: None),
        pytest.raises(Busy, match=r"^a neighbour \(process \d+\) is measuring on this machine"),
    ):
        Deriving(host, "a test", patient=False).give(given, {}, 0)


def test_elements_are_those_that_are_named(tmp_path: Path, code: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path / "home"))
    code.write_text("import numpy as np\n\nimages = np.arange(3.0)\n\n\ndef contrast(x):\n    return x\n")
    np.savez(tmp_path / "pair.npz", a=np.arange(4.0), b=np.ones((4, 2)))
    np.save(tmp_path / "one.npy", np.arange(4.0))
    for elems, expected in (
        ("my_code.py:images", np.arange(3.0)),
        ("pair.npz", {"a": np.arange(4.0), "b": np.ones((4, 2))}),
        ("one.npy", np.arange(4.0)),
    ):
        asked = given(parser().parse_args(["compare", f"{code}:contrast", "--elems", f"{tmp_path}/{elems}"]))
        assert asked is not None and asked.function == "contrast"
        space: dict[str, Any] = {}
        exec(asked.code, space)
        np.testing.assert_equal(space[asked.elems], expected)


def test_what_is_wrong_is_said_before_anything_starts(
    code: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def start(**_: Any) -> None:
        raise AssertionError("a runner was started")

    monkeypatch.setattr("measure.runner.Runner", start)
    for arguments, sentence in (
        (["{code}:flip"], "what flip is mapped over is missing: name it by --elems"),
        (["square", "--elems", "images"], "--elems goes with a function of your own: name it as FILE.py:FUNCTION"),
        (["{code}:", "--elems", "images"], "is not valid: write FILE.py:FUNCTION"),
        (["{code}x.py:flip", "--elems", "images"], "cannot be read: No such file or directory"),
        (["{code}:flip", "--elems", "other.py:images"], "--elems other.py:images is in another file than flip"),
        (["{code}:flip", "--elems", "no_such.npy"], "no_such.npy cannot be read: No such file or directory"),
    ):
        status = command_line.main(["compare", *(part.format(code=code) for part in arguments)])
        assert status == command_line.INVALID
        assert sentence in capsys.readouterr().err


# --- what becomes of each strategy ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own(host: HostLauncher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with pytest.MonkeyPatch.context() as patch:
        # Where values are wrong, a fresh interpreter would look whether oneDNN is to blame.
        patch.setattr(stages, "FreshLauncher", lambda *_, **__: Lent(host))
        nobody_else_works(patch)
        with running(host, tmp_path_factory.mktemp("own")) as runner:
            yield runner


def compared(own: Runner, function: str, elems: str, strategies: Sequence[str]) -> Run:
    slug = own.give(Given(code=CODE, function=function, elems=elems))
    return measure(own, parse({"workload": slug, "strategies": list(strategies), "budget_s": 300.0}))


def outcomes(run: Run) -> dict[str, str]:
    return {item.strategy: item.outcome for item in run.measurements if item.twin_of is None}


@pytest.mark.parametrize(
    ("function", "wrong"),
    [
        # What Python prints and counts happens in a graph while it is traced.
        (
            "counting",
            {"map_fn.graph": "prints nothing instead of 8", "vectorized_map.graph": "in calls instead of 16"},
        ),
        ("keeps_state", {"vectorized_map.graph": "two calls with 8 elements leave 2.0 in total instead of 16.0"}),
        # The assertion is made for the first element alone.
        ("positive", {"vectorized_map.graph": "the strategy leaves out assertions"}),
    ],
)
def test_a_strategy_without_the_effects_of_a_loop_is_wrong(
    own: Runner, function: str, wrong: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
):
    def start(*_: Any, **__: Any) -> None:
        raise AssertionError("a strategy was run without oneDNN, though its values are right")

    monkeypatch.setattr(stages, "FreshLauncher", start)
    run = compared(own, function, "vectors", list(wrong))
    assert outcomes(run) == dict.fromkeys(wrong, "wrong") and run.ranking == []
    for slug, sentence in wrong.items():
        assert sentence in run.measurement(slug).error.message  # type: ignore[union-attr]


def test_values_that_are_random_are_compared_by_their_shapes(own: Runner):
    run = compared(own, "flip", "images", ["map_fn.graph"])
    assert outcomes(run) == {"map_fn.graph": "ok"} and run.ranking == [["map_fn.graph"]]
    assert CODE.strip() in run.measurement("map_fn.graph").code.source  # type: ignore[union-attr]
    (leaf,) = run.measurement("map_fn.graph").correctness.leaves  # type: ignore[union-attr]
    assert (leaf.shape, leaf.max_abs) == ([16, 8, 8, 3], None)


def test_results_without_a_fixed_shape_are_ragged_and_what_has_no_form_for_them_is_said(own: Runner):
    cannot = ["map_fn.xla", "while_loop.graph", "vectorized_map.graph"]
    run = compared(own, "large", "vectors", ["map_fn.graph", *cannot])
    assert outcomes(run) == {"map_fn.graph": "ok", **dict.fromkeys(cannot, "unsupported")}
    leaves = run.measurement("map_fn.graph").correctness.leaves  # type: ignore[union-attr]
    assert [leaf.path for leaf in leaves] == [".row_lengths[0]", ".values"]
