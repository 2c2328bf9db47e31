"""Correctness in one sentence, which claims in ULP only what ULP can tell, and the errors of each strategy."""

import pytest
from msgspec.structs import replace

from measure.model.run import Correctness, LeafCheck, Run
from measure.output import rows
from tests import synthetic
from views.result import correctness
from workloads.functions import Facts, Given, OwnFunction

RELATIVE = 1e-6


@pytest.fixture(scope="module")
def run() -> Run:
    return synthetic.run()


def said(*leaves: LeafCheck | None, wrong: int = 0) -> str:
    """The sentence for strategies with an output of these leaves, one strategy a leaf, and so many wrong ones more."""
    run = synthetic.run(unhappy=False)
    checks = [Correctness(ok=True, max_abs=leaf and leaf.max_abs, leaves=[leaf] if leaf else []) for leaf in leaves]
    checks += [Correctness(ok=False)] * wrong
    items = [replace(item, correctness=check) for item, check in zip(run.measurements, checks, strict=False)]
    return correctness.sentence(run.request, rows.make(replace(run, measurements=items)))


def leaf(max_ulp: float | None, max_rel: float = 1e-7, max_abs: float = 1e-7, dtype: str = "float32") -> LeafCheck:
    return LeafCheck(
        path="", dtype=dtype, shape=[1], max_abs=max_abs, max_rel=max_rel, max_ulp=max_ulp,
        tolerance={"relative": RELATIVE, "absolute": 1e-6},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("most", "words"), [(0.5, "0.5"), (0.501, "0.51"), (1.0, "1"), (1.53, "1.6"), (9.99, "10"), (83.0, "83"),
                        (1234.0, "1,300")]
)  # fmt: skip
def test_where_all_pass_one_sentence_says_within_how_many_ulp(most: float, words: str):
    assert said(leaf(0.25), leaf(most), leaf(0.1)) == f"All 3 agree with float64 within {words} ULP of float32."


def test_the_one_and_the_others_have_their_words():
    assert said(leaf(1.0)) == "batched.xla agrees with float64 within 1 ULP of float32."
    assert said(leaf(1.0), leaf(2.0, dtype="float16")) == "All 2 agree with float64 within 2 ULP."
    exact = leaf(None, max_rel=0.0, max_abs=0.0, dtype="int32")
    assert said(exact, exact) == "All 2 agree with float64 exactly."
    assert said(exact, leaf(1.0)) == "All 2 agree with float64 within 1 ULP of float32."
    assert said(leaf(1.0), leaf(1.0), wrong=1) == (
        "1 of 3 wrong: batched.eager. The other 2 agree with float64 within 1 ULP of float32."
    )
    assert said(wrong=1) == "1 of 1 wrong: batched.xla."
    assert said(None) == "batched.xla agrees with float64 within tolerance."  # of a file without leaves
    assert correctness.sentence(synthetic.run().request, []) == "No output has been compared with the reference yet."


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("float64", "your function run slice by slice in float64 exactly."),
        ("own", "your function run slice by slice exactly."),
        ("given", "the reference that was given exactly."),
        ("a word of a later file", "float64 exactly."),
    ],
)
def test_of_a_function_of_ones_own_it_is_said_what_results_are_compared_with(reference: str, words: str):
    run = synthetic.run(unhappy=False)
    facts = Facts(size={}, element=None, result=None, dtype="float32", reference=reference)
    request = replace(run.request, own=OwnFunction(given=Given(code="", function="f", elems="xs"), facts=facts))
    check = Correctness(ok=True, leaves=[leaf(None, max_rel=0.0, max_abs=0.0, dtype="int32")])
    items = [replace(item, correctness=check) for item in run.measurements[:2]]
    said = correctness.sentence(request, rows.make(replace(run, measurements=items)))
    assert said == f"All 2 agree with {words}"


def test_near_zero_the_absolute_error_is_said_and_no_ulp():
    """A value that cancels out is far off in ULP, and right: a figure in ULP would mislead."""
    words = said(leaf(1.0), leaf(5e6, max_rel=0.9, max_abs=2.4e-7))
    assert words.startswith("All 2 agree with float64 within tolerance: the largest absolute error is 2.4e-07.")
    assert "near to zero" in words and "5e" not in words


def test_the_table_puts_the_wrong_one_first(run: Run):
    frame = correctness.frame(rows.make(run))
    assert len(frame) == 12
    assert frame.iloc[0].to_dict() == {
        "strategy": "■ dataset.graph",
        "check": "✕ wrong",
        "largest absolute error": "0.53",
        "relative": "0.71",
        "in ULP": "5.1e+06",
        "NaN differs": "3",
    }
    assert set(frame["check"][1:]) == {"✓ pass"}


def test_what_would_be_right_enough(run: Run):
    assert correctness.tolerances(run.measurement("dataset.graph")) == [
        "In output an error of relative 1.2e-06 is allowed."
    ]
    assert correctness.tolerances(run.measurement("batched.xla")) == []
