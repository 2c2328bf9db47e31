"""Functions of a person's own: given on the command line, with elements of a file, refused beforehand, and measured as
they are."""

import contextlib
import os
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from measure import __main__ as command_line
from measure import making
from measure.arguments import given, parser
from measure.engine.deriving import derive
from measure.making import to_continue
from measure.pool.launcher import Launcher
from measure.run.encoding import decode
from measure.run.request import RequestError, parse
from measure.run.sweep_request import parse_sweep
from measure.store.store import Store
from measure.subject.derive import MOST_BYTES as MOST_DERIVED_BYTES
from measure.subject.messages import Spec
from strategies import script
from tests import synthetic
from tests.engine import measure_here
from tests.functions import CODE
from tests.grid import untimed
from tests.hanging import STEP_S, Clock, Slow
from tests.keeping import put
from tests.subjects import Message
from workloads import elems_file, functions
from workloads.discovery import DiscoveryError
from workloads.functions import Given


@pytest.fixture
def code(tmp_path: Path) -> Path:
    path = tmp_path / "my_code.py"
    path.write_text(CODE)
    return path


def test_a_size_is_swept_and_a_rewrite_a_reference_and_elements_from_a_file_can_be_added(
    host: Launcher, tmp_path: Path, code: Path, monkeypatch: pytest.MonkeyPatch
):
    measure_here(host, monkeypatch)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    file = tmp_path / "run.json"
    code.write_text(
        CODE
        + "\n\ndef contrast_of_all(batch):\n    return tf.image.adjust_contrast(batch, 2.0)\n"
        + "\n\ndef right(batch):\n    mean = batch.astype(np.float64).mean((1, 2), keepdims=True)\n"
        + "    return (batch - mean) * 2 + mean\n"
    )
    np.save(tmp_path / "images.npy", np.random.default_rng(0).random((5, 4, 4, 3), dtype=np.float32))
    own = ["--elems", str(tmp_path / "images.npy"), "--batched", "contrast_of_all", "--reference", "right"]
    more = ["--strategies", "map_fn.graph,batched.graph", "--size", "batch=2,7", "--budget", "300", "--quiet"]
    assert command_line.main(["sweep", f"{code}:contrast", *own, *more, "--json", str(file)]) == 0
    run = decode(file.read_bytes())
    measured = [item for point in run.points for item in point.measurements if item.twin_of is None]
    assert [(item.outcome, item.correctness.leaves[0].shape[0]) for item in measured] == [  # type: ignore[union-attr]
        ("ok", batch) for batch in (2, 2, 7, 7)
    ]
    assert run.request.own.facts.reference == "given"  # type: ignore[union-attr]
    assert str(tmp_path) not in run.request.own.given.code  # type: ignore[union-attr]


def test_a_sweep_that_is_continued_brings_its_function_but_not_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    run = synthetic.of_function(synthetic.sweep())
    kept = Store(tmp_path)
    kept.add(run)
    with pytest.raises(RequestError, match="comes from elsewhere"):
        to_continue(kept, run.id)
    assert functions.get(run.request.workload) is None
    kept.delete([run.id])
    put(kept, replace(run, status="budget"))
    assert to_continue(kept, run.id).axes == run.axes
    assert functions.get(run.request.workload) == run.request.own


def test_to_look_at_a_function_at_each_point_of_a_sweep_is_part_of_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(STEP_S, "derive", 10.0)
    own = synthetic.of_function(synthetic.run()).request.own
    assert own
    slug = functions.add(own := replace(own, facts=replace(own.facts, size={"batch": 4, "side": 100})))

    def derived(spec: Spec) -> list[Message]:
        facts = replace(own.facts, size={**own.facts.size, **spec.size})
        return [{"event": "derived", "facts": msgspec.to_builtins(facts)}]

    for sides, ends in (
        (range(1, 21), pytest.raises(RequestError, match="the time of this run, 90 s, was over")),
        (range(30, 32), contextlib.nullcontext()),
    ):
        axes = [{"kind": "size", "name": "side", "values": list(sides)}]
        asked = parse_sweep({"workload": slug, "strategies": ["loop.eager"], "axes": axes, "budget_s": 60.0})
        clock = Clock(monkeypatch)
        # None of them is measured in time.
        subjects = Slow(clock=clock, answers={"derive": derived}, hangs=lambda step, _: step == "memory")
        with ends:
            assert making.made(Store(tmp_path), "0" * 24, asked, subjects, lambda _: None).run().status != "complete"
        assert clock.now_s == pytest.approx(90.0, abs=1.0), "what was looked at and measured, together"


def test_elements_are_those_that_are_named(tmp_path: Path, code: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path / "home"))
    code.write_text("import numpy as np\n\nimages = np.arange(3.0)\n\n\ndef contrast(x):\n    return x\n")
    np.savez(tmp_path / "pair.npz", a=np.arange(4.0), b=np.ones((4, 2)))
    np.save(tmp_path / "one.npy", np.arange(4.0))
    for elems, expected in (
        ("images", np.arange(3.0)),
        (f"{tmp_path}/pair.npz", {"a": np.arange(4.0), "b": np.ones((4, 2))}),
        (f"{tmp_path}/one.npy", np.arange(4.0)),
    ):
        asked = given(parser().parse_args(["compare", f"{code}:contrast", "--elems", elems]))
        assert asked is not None and asked.function == "contrast"
        space: dict[str, Any] = {}
        exec(asked.code, space)
        np.testing.assert_equal(space[asked.elems], expected)


def test_what_is_wrong_is_said_before_anything_starts(code: Path, capsys: pytest.CaptureFixture[str]):
    broken = code.with_name("broken.py")
    broken.write_text("f = (")
    for arguments, sentence in (
        (["{code}:flip"], "what flip is mapped over is missing: name it by --elems"),
        (["square", "--elems", "images"], "--elems goes with a function of your own: name it as FILE.py:FUNCTION"),
        (["{code}:", "--elems", "images"], "is not valid: write FILE.py:FUNCTION"),
        (["{code}x.py:flip", "--elems", "images"], "cannot be read: No such file or directory"),
        (["{code}:flip", "--elems", "no_such.npy"], "no_such.npy cannot be read: No such file or directory"),
        (["{code}:flop", "--elems", "images"], "the code has no 'flop': it defines"),
        (["{broken}:f", "--elems", "e"], "error: line 1: '(' was never closed"),
    ):
        status = command_line.main(["compare", *(part.format(code=code, broken=broken) for part in arguments)])
        assert status == command_line.INVALID
        assert sentence in capsys.readouterr().err


def executed(code: str) -> Any:
    space: dict[str, Any] = {}
    exec(code, space)
    return space[elems_file.NAME]


def test_a_copy_is_kept_whose_name_tells_its_content_and_the_oldest_go_where_they_take_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(elems_file, "KEPT_BYTES", 20_000)
    file, home, codes = tmp_path / "rows.npy", tmp_path / "home" / "elems", list[str]()
    for age in range(3):
        np.save(file, np.full(1_000, age))
        codes.append(elems_file.store(str(file)))
        assert elems_file.store(str(file)) == codes[age] and str(tmp_path) not in codes[age]
        for copy in home.iterdir():
            if copy.stat().st_mtime > 9:  # the new one
                os.utime(copy, (age, age))
    assert len(set(codes)) == 3
    assert len({path.name for path in home.glob("rows-*.npy")}) == 2 == len(list(home.iterdir()))
    assert [executed(code)[0] for code in codes[1:]] == [1, 2]
    with pytest.raises(FileNotFoundError, match="rows-"):
        executed(codes[0])


def test_a_file_that_is_too_large_is_refused_before_it_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert elems_file.MOST_BYTES == MOST_DERIVED_BYTES, "no more is kept than can be derived"
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(elems_file, "MOST_BYTES", 1_000)
    (file := tmp_path / "large.npy").write_bytes(bytes(1_001))
    with pytest.raises(DiscoveryError, match=f"^{file} holds .* can be measured: give fewer or smaller elements$"):
        elems_file.store(str(file))
    assert not (tmp_path / "home").exists()


def test_strategies_end_as_the_function_allows(host: Launcher, monkeypatch: pytest.MonkeyPatch):
    """Effects and results without a fixed shape are not measured where they would be lost; named tuples are plain ones;
    of random values shapes are compared, and of many elements some."""
    monkeypatch.setattr(script, "MOST_COMPARED", 3)
    for function, elems, right, cannot, paths in (
        ("positive", "vectors", ["loop.eager"], ["vectorized_map.graph"], [""]),
        ("largest", "vectors", ["loop.eager", "map_fn.xla", "while_loop.graph"], [], [".k[0]", ".k[1]"]),
        ("flip", "images", ["map_fn.graph"], [], [""]),
        ("large", "vectors", ["map_fn.graph"], ["map_fn.xla", "while_loop.graph"], [".row_lengths[0]", ".values"]),
    ):
        slug = functions.add(derive(Given(code=CODE, function=function, elems=elems), {}, 0, host))
        run = untimed(parse({"workload": slug, "strategies": [*right, *cannot]}), host)
        items = {item.strategy: item for item in run.measurements}
        assert [slug for slug, item in items.items() if item.correctness and item.correctness.ok] == right, function
        assert [slug for slug, item in items.items() if item.outcome == "unsupported"] == cannot, function
        first = items[right[0]]
        assert [leaf.path for leaf in first.correctness.leaves] == paths and CODE.strip() in first.code.source
        assert all((leaf.max_abs is None) == (function == "flip") for leaf in first.correctness.leaves)
        # Of rows of different lengths all are compared.
        assert ("some_compared" in {warning.code for warning in run.warnings}) == (function != "large")
