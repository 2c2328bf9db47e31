"""Functions of a person's own: given on the command line, refused beforehand, and measured as they are."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from measure import __main__ as command_line
from measure.arguments import given, parser
from measure.engine import stages
from measure.model.request import RequestError, parse
from measure.model.run import Run
from measure.model.run_file import decode
from measure.pool.host_launcher import HostLauncher
from measure.store.store import Store
from strategies import own_script
from tests import synthetic
from tests.engine import Lent, Own, measure, measure_here, running
from tests.functions import CODE
from tests.keeping import put
from tests.subjects import leave_the_machine
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
    for known in ("_derived", "_workloads"):
        monkeypatch.setattr(functions, known, {})
    measure_here(Lent(host), monkeypatch)
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
    put(kept, replace(run, status="budget"))
    assert given(arguments) == run.request.own.given  # type: ignore[union-attr]
    kept.delete([run.id])
    kept.add(run)
    with pytest.raises(RequestError, match="comes from elsewhere"):
        given(arguments)


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
    def start(*_: Any) -> None:
        raise AssertionError("something was started")

    monkeypatch.setattr(command_line, "Local", start)
    broken = code.with_name("broken.py")
    broken.write_text("f = (")
    for arguments, sentence in (
        (["{code}:flip"], "what flip is mapped over is missing: name it by --elems"),
        (["square", "--elems", "images"], "--elems goes with a function of your own: name it as FILE.py:FUNCTION"),
        (["{code}:", "--elems", "images"], "is not valid: write FILE.py:FUNCTION"),
        (["{code}x.py:flip", "--elems", "images"], "cannot be read: No such file or directory"),
        (["{code}:flip", "--elems", "other.py:images"], "--elems other.py:images is in another file than flip"),
        (["{code}:flip", "--elems", "no_such.npy"], "no_such.npy cannot be read: No such file or directory"),
        (["{code}:flop", "--elems", "images"], "the code has no 'flop', which was named as the function: it defines"),
        (["{broken}:f", "--elems", "e"], "error: line 1: '(' was never closed"),
    ):
        status = command_line.main(["compare", *(part.format(code=code, broken=broken) for part in arguments)])
        assert status == command_line.INVALID
        assert sentence in capsys.readouterr().err


# --- what becomes of each strategy ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own(host: HostLauncher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Own]:
    with pytest.MonkeyPatch.context() as patch:
        # Where values are wrong, a fresh interpreter would look whether oneDNN is to blame.
        patch.setattr(stages, "FreshLauncher", lambda *_, **__: Lent(host))
        leave_the_machine(patch)
        with running(host, tmp_path_factory.mktemp("own")) as own:
            yield own


def compared(own: Own, function: str, elems: str, strategies: Sequence[str]) -> Run:
    slug = own.look_at(Given(code=CODE, function=function, elems=elems))
    return measure(own, parse({"workload": slug, "strategies": list(strategies), "budget_s": 300.0}))


def outcomes(run: Run) -> dict[str, str]:
    return {item.strategy: item.outcome for item in run.measurements if item.twin_of is None}


def test_a_strategy_that_would_leave_out_an_effect_is_not_measured(own: Own):
    run = compared(own, "positive", "vectors", ["loop.eager", "vectorized_map.graph"])
    assert outcomes(run) == {"loop.eager": "ok", "vectorized_map.graph": "unsupported"}
    error = run.measurement("vectorized_map.graph").error
    assert error is not None
    assert error.message == "the function has assertions (Assert), here for the first element alone"


def test_named_tuples_are_plain_ones_in_every_strategy(own: Own):
    slugs = ["loop.eager", "map_fn.graph", "while_loop.graph", "vectorized_map.graph", "map_fn.xla", "dataset.graph"]
    run = compared(own, "largest", "vectors", slugs)
    assert outcomes(run) == dict.fromkeys(slugs, "ok")
    leaves = run.measurement("map_fn.graph").correctness.leaves  # type: ignore[union-attr]
    assert [leaf.path for leaf in leaves] == [".k[0]", ".k[1]"]


def test_of_many_elements_some_are_compared_and_the_run_says_so(own: Own, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(own_script, "MOST_COMPARED", 3)
    run = compared(own, "contrast", "images", ["map_fn.graph"])
    assert outcomes(run) == {"map_fn.graph": "ok"}
    (warning,) = [warning.message for warning in run.warnings if warning.code == "some_compared"]
    assert warning.startswith("results of 3 of 16 elements are compared with right ones")


def test_values_that_are_random_are_compared_by_their_shapes(own: Own):
    run = compared(own, "flip", "images", ["map_fn.graph"])
    assert outcomes(run) == {"map_fn.graph": "ok"} and run.ranking == [["map_fn.graph"]]
    assert CODE.strip() in run.measurement("map_fn.graph").code.source  # type: ignore[union-attr]
    (leaf,) = run.measurement("map_fn.graph").correctness.leaves  # type: ignore[union-attr]
    assert (leaf.shape, leaf.max_abs) == ([16, 8, 8, 3], None)


def test_results_without_a_fixed_shape_are_ragged_and_what_has_no_form_for_them_is_said(own: Own):
    cannot = ["map_fn.xla", "while_loop.graph", "vectorized_map.graph"]
    run = compared(own, "large", "vectors", ["map_fn.graph", *cannot])
    assert outcomes(run) == {"map_fn.graph": "ok", **dict.fromkeys(cannot, "unsupported")}
    leaves = run.measurement("map_fn.graph").correctness.leaves  # type: ignore[union-attr]
    assert [leaf.path for leaf in leaves] == [".row_lengths[0]", ".values"]
