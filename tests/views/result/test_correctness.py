"""Correctness in one sentence, which claims in ULP only what ULP can tell, and the errors of each strategy."""

import pytest
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from measure.output import rows
from measure.run.run import Correctness, LeafCheck, Run
from tests import synthetic
from views.result import correctness
from workloads.functions import OwnFunction


@pytest.fixture(scope="module")
def run() -> Run:
    return synthetic.run()


def said(*leaves: LeafCheck | None, wrong: int = 0, own: OwnFunction | UnsetType = UNSET) -> str:
    """The sentence for strategies with an output of these leaves, one strategy a leaf, and so many wrong ones more."""
    run = synthetic.run(unhappy=False)
    checks = [Correctness(ok=True, max_abs=leaf and leaf.max_abs, leaves=[leaf] if leaf else []) for leaf in leaves]
    checks += [Correctness(ok=False)] * wrong
    items = [replace(item, correctness=check) for item, check in zip(run.measurements, checks, strict=False)]
    return correctness.sentence(replace(run.request, own=own), rows.make(replace(run, measurements=items)))


def leaf(max_ulp: float | None, max_rel: float = 1e-7, max_abs: float = 1e-7, dtype: str = "float32") -> LeafCheck:
    return LeafCheck(
        path="", dtype=dtype, shape=[1], max_abs=max_abs, max_rel=max_rel, max_ulp=max_ulp,
        tolerance={"relative": 1e-6, "absolute": 1e-6},
    )  # fmt: skip


EXACT = leaf(None, max_rel=0.0, max_abs=0.0, dtype="int32")


def test_the_one_and_the_others_have_their_words() -> None:
    for sentence, words in (
        (said(leaf(1.0)), "batched.xla agrees with float64 within 1 ULP of float32."),
        (said(leaf(1.0), leaf(2.0, dtype="float16")), "All 2 agree with float64 within 2 ULP."),
        (said(EXACT, EXACT), "All 2 agree with float64 exactly."),
        (said(leaf(1.0), leaf(1.0), wrong=1),
         "1 of 3 wrong: batched.eager. The other 2 agree with float64 within 1 ULP of float32."),
        (said(wrong=1), "1 of 1 wrong: batched.xla."),
        (said(None), "batched.xla agrees with float64 within tolerance."),  # of a file without leaves
        (said(), "No output has been compared with the reference yet."),
    ):  # fmt: skip
        assert sentence == words


def test_near_zero_the_absolute_error_is_said_and_no_ulp() -> None:
    """A value that cancels out is far off in ULP, and right: a figure in ULP would mislead."""
    words = said(leaf(1.0), leaf(5e6, max_rel=0.9, max_abs=2.4e-7))
    assert "within tolerance: the largest absolute error is 2.4e-07" in words and "5e" not in words


def test_the_table_puts_the_wrong_one_first_and_says_what_would_be_right_enough(run: Run) -> None:
    frame = correctness.frame(rows.make(run))
    assert list(frame.iloc[0]) == ["■ dataset.graph", "✕ wrong", "0.53", "0.71", "5.1e+06", "3"]
    assert len(frame) == 12 and set(frame["check"][1:]) == {"✓ pass"}
    [allowed] = correctness.tolerances(run.measurement("dataset.graph"))
    assert "relative 1.2e-06" in allowed and correctness.tolerances(run.measurement("batched.xla")) == []
