"""Functions as people have them, given as bare code and measured as they are: all the way to a verdict."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from measure.engine import stages
from measure.engine.host_launcher import HostLauncher
from measure.model.request import parse
from measure.model.run import Run
from measure.runner import Runner
from tests.engine import Lent, measure, running
from tests.functions import CODE, KERAS
from workloads.functions import Given

STRATEGIES = ("loop.eager", "map_fn.graph", "vectorized_map.graph")
LEADS = (*(f"{slug} is fastest" for slug in (*STRATEGIES, "map_fn.xla")), "Two strategies tie", "Three strategies tie")


@pytest.fixture(scope="module")
def own(host: HostLauncher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with pytest.MonkeyPatch.context() as patch:
        # Where values are wrong, a fresh interpreter would look whether oneDNN is to blame.
        patch.setattr(stages, "FreshLauncher", lambda *_, **__: Lent(host))
        with running(host, tmp_path_factory.mktemp("own")) as runner:
            yield runner


def compared(own: Runner, function: str, elems: str, code: str = CODE, strategies: Sequence[str] = STRATEGIES) -> Run:
    slug = own.give(Given(code=code, function=function, elems=elems))
    return measure(own, parse({"workload": slug, "strategies": list(strategies), "budget_s": 1.0}))


def outcomes(run: Run) -> dict[str, str]:
    return {item.strategy: item.outcome for item in run.measurements if item.twin_of is None}


@pytest.mark.parametrize(
    ("function", "elems", "code", "others"),
    [
        pytest.param("contrast", "images", CODE, {}, id="an image"),
        pytest.param("decode", "raw", CODE, {}, id="bytes"),
        pytest.param("to_number", "numbers_as_text", CODE, {}, id="text"),
        pytest.param("solve", "systems", CODE, {}, id="a Cholesky solve"),
        # Its variables are drawn at random when the layers are first called, and are the same in every process.
        pytest.param("dense", "vectors", KERAS, {}, id="layers of Keras"),
        pytest.param("gradient", "vectors", KERAS, {}, id="a gradient of a model"),
        pytest.param("three", "vectors", CODE, {}, id="a dict of three dtypes"),
        pytest.param("mean", "sentences", CODE, {"vectorized_map.graph": "unsupported"}, id="a ragged mean"),
        pytest.param("marked_words", "marked", CODE, {"vectorized_map.graph": "unsupported"}, id="a ragged part"),
        # A condition has no batched form that TensorFlow could make of Python.
        pytest.param("branchy", "vectors", CODE, {"vectorized_map.graph": "failed"}, id="a condition"),
    ],
)
def test_a_function_works_as_given(own: Runner, function: str, elems: str, code: str, others: Mapping[str, str]):
    run = compared(own, function, elems, code)
    assert outcomes(run) == {**dict.fromkeys(STRATEGIES, "ok"), **others}
    ranked = [slug for group in run.ranking for slug in group]
    assert sorted(ranked) == [slug for slug in STRATEGIES if slug not in others]
    assert run.verdict.startswith(LEADS)


@pytest.mark.parametrize(
    ("function", "wrong"),
    [
        # What Python prints and counts happens in a graph while it is traced.
        (
            "counting",
            {
                "map_fn.graph": "prints nothing instead of 8",
                "vectorized_map.graph": "in calls instead of 16",
                "map_fn.xla": "prints nothing instead of 8",
            },
        ),
        ("printing", {"vectorized_map.graph": "for 8 elements it prints 1 line instead of 8"}),
        ("keeps_state", {"vectorized_map.graph": "two calls with 8 elements leave 2.0 in total instead of 16.0"}),
        ("in_python", {}),
    ],
)
def test_a_strategy_without_the_effects_of_a_loop_is_wrong(
    own: Runner, function: str, wrong: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
):
    def start(*_: Any, **__: Any) -> None:
        raise AssertionError("a strategy was run without oneDNN, though its values are right")

    monkeypatch.setattr(stages, "FreshLauncher", start)
    chosen = (*STRATEGIES, "map_fn.xla")
    uncompiled = {"map_fn.xla": "unsupported"} if function in ("printing", "in_python") else {}
    run = compared(own, function, "vectors", strategies=chosen)
    assert outcomes(run) == {slug: "wrong" if slug in wrong else "ok" for slug in chosen} | uncompiled
    for slug, sentence in wrong.items():
        assert sentence in run.measurement(slug).error.message  # type: ignore[union-attr]
    ranked = [slug for group in run.ranking for slug in group]
    assert sorted(ranked) == sorted(slug for slug in chosen if slug not in {*wrong, *uncompiled})
    assert run.verdict.startswith(LEADS if len(ranked) > 1 else "loop.eager takes")


def test_values_that_are_random_are_compared_by_their_shapes(own: Runner):
    run = compared(own, "flip", "images")
    assert outcomes(run) == dict.fromkeys(STRATEGIES, "ok")
    for slug in STRATEGIES:
        (leaf,) = run.measurement(slug).correctness.leaves  # type: ignore[union-attr]
        assert (leaf.shape, leaf.max_abs) == ([16, 8, 8, 3], None)


def test_results_without_a_fixed_shape_are_ragged(own: Runner):
    works, cannot = ["loop.eager", "map_fn.graph", "dataset.graph"], ["map_fn.xla", "while_loop.graph"]
    run = compared(own, "large", "vectors", strategies=[*works, *cannot])
    assert outcomes(run) == {**dict.fromkeys(works, "ok"), **dict.fromkeys(cannot, "unsupported")}
    for slug in works:
        leaves = run.measurement(slug).correctness.leaves  # type: ignore[union-attr]
        assert [leaf.path for leaf in leaves] == [".row_lengths[0]", ".values"]
    reasons = [run.measurement(slug).error.message for slug in cannot]  # type: ignore[union-attr]
    assert "makes of a tf.RaggedTensor" in reasons[0]
    assert reasons[1] == "tf.while_loop stacks results of one shape, and the lengths of these differ"


def test_a_strategy_that_leaves_out_an_assertion_is_wrong(own: Runner):
    chosen = [*STRATEGIES, "loop_compiled.eager", "vectorized_map.xla"]
    run = compared(own, "positive", "vectors", strategies=chosen)
    # It makes the assertion for the first element alone.
    wrong = {"vectorized_map.graph": "wrong", "vectorized_map.xla": "wrong"}
    assert outcomes(run) == {**dict.fromkeys(chosen, "ok"), **wrong}
    error = run.measurement("vectorized_map.xla").error
    assert error is not None
    assert "the strategy leaves out assertions" in error.message
    # The run brings along what was given and what was derived of it, and each script holds the code as it is.
    assert run.request.own.given.code == CODE  # type: ignore[union-attr]
    source = run.measurement("map_fn.graph").code.source  # type: ignore[union-attr]
    assert CODE.strip() in source


def test_a_check_that_numbers_are_finite_is_left_out_under_xla(own: Runner):
    run = compared(own, "finite", "vectors", strategies=[*STRATEGIES, "map_fn.xla"])
    assert outcomes(run) == {**dict.fromkeys(STRATEGIES, "ok"), "map_fn.xla": "wrong"}
    error = run.measurement("map_fn.xla").error
    assert error is not None
    assert "the strategy leaves out assertions" in error.message
