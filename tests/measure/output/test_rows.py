"""The rows of a run, exactly, from made-up runs: their order, ranks, factors and baseline."""

import pytest
from msgspec.structs import replace

from measure.output import rows, table
from tests import synthetic
from tests.synthetic import timed_run


def test_ranked_first_then_wrong_then_the_others() -> None:
    shown = rows.make(synthetic.run(), "loop.eager")
    assert [row.slug for row in shown[:4]] == ["batched.xla", "batched.graph", "vectorized_map.xla", "batched.eager"]
    assert [row.rank for row in shown[:6]] == [1, 1, 3, 3, 5, 6]
    assert shown[11].slug == "dataset.graph" and shown[11].outcome == "wrong" and shown[11].rank is None
    assert {row.outcome for row in shown[12:]} == {"timeout", "out_of_memory", "failed", "unsupported", "cancelled"}
    assert [row.order for row in shown] == list(range(len(shown)))
    assert not any("#twin" in row.slug for row in shown), "twins are no rows"
    assert rows.make(replace(timed_run(), ranking=[])) == [], "a run with nothing in it yet"


def test_factor_is_baseline_over_own_with_its_interval() -> None:
    run = synthetic.run()
    by_slug = {row.slug: row for row in rows.make(run, "loop.eager")}
    fast, base = by_slug["batched.xla"], by_slug["loop.eager"]
    assert fast.factor == pytest.approx(base.median_s / fast.median_s)
    assert fast.factor_low < fast.factor < fast.factor_high
    assert base.factor == 1.0 and base.factor_low is None
    assert fast.of_limit == pytest.approx(fast.median_s / run.limit.seconds)


def test_the_baseline_is_what_is_wanted_or_usual_or_the_slowest_that_is_right() -> None:
    for wanted, chosen in (
        (("map_fn.xla",), "map_fn.xla"),
        (("not.there", None), "map_fn.graph"),
        ((), "map_fn.graph"),
    ):
        assert rows.choose_baseline(synthetic.run(), *wanted) == chosen
    run = timed_run(loop__eager=0.3, map_fn__xla=0.2, batched__graph=0.1)
    wrong = [replace(m, outcome="wrong" if m.strategy == "loop.eager" else m.outcome) for m in run.measurements]
    assert rows.choose_baseline(run) == "loop.eager"
    assert rows.choose_baseline(replace(run, measurements=wrong), "loop.eager") == "map_fn.xla"


def test_the_largest_error_is_relative_to_the_scale_of_the_result():
    """A value that cancels out is off by 1e38 ULP and right: its error is small beside the others."""
    run = synthetic.run()
    item = run.measurement("batched.xla")
    assert item.correctness is not None
    leaf = replace(
        item.correctness.leaves[0],
        max_abs=4e-7,
        max_rel=3e38,
        max_ulp=9.9e38,
        tolerance={"relative": 1e-6, "absolute": 2e-6},
    )
    run = replace(run, measurements=[replace(item, correctness=replace(item.correctness, leaves=[leaf]))])
    (row,) = rows.listed(run)
    assert row.max_of_scale == pytest.approx(2e-7)
    assert "2.00e-07" in table.render(run) and "ULP" not in table.render(run)


def test_a_strategy_that_was_not_run_has_its_stage_only_while_the_run_goes_on() -> None:
    run = synthetic.run()
    item = replace(run.measurements[0], outcome="not_run", stage="waiting")
    for finished, status in ((None, "waiting"), (run.finished, "not run")):
        row = rows.listed(replace(run, finished=finished, measurements=[item], ranking=[]))[0]
        assert row.status == status
