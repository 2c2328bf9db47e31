"""The rows of a run, exactly, from made-up runs: their order, ranks, factors and baseline."""

import pytest
from msgspec.structs import replace

from measure.model.run import Run
from measure.output import rows
from tests import synthetic
from tests.synthetic import timed_run
from views.charts import latency, memory


@pytest.fixture(scope="module")
def run() -> Run:
    return synthetic.run()


@pytest.fixture(scope="module")
def shown(run: Run) -> list[rows.Row]:
    return rows.make(run, "loop.eager")


class TestRows:
    def test_ranked_first_then_wrong_then_the_others(self, shown):
        assert [row.slug for row in shown[:4]] == [
            "batched.xla",
            "batched.graph",
            "vectorized_map.xla",
            "batched.eager",
        ]
        assert [row.rank for row in shown[:6]] == [1, 1, 3, 3, 5, 6]
        assert shown[11].slug == "dataset.graph" and shown[11].outcome == "wrong" and shown[11].rank is None
        assert {row.outcome for row in shown[12:]} == {"timeout", "out_of_memory", "failed", "unsupported", "cancelled"}
        assert [row.order for row in shown] == list(range(len(shown)))

    def test_twins_are_no_rows(self, shown, run):
        assert any(m.twin_of for m in run.measurements)
        assert not any("#twin" in row.slug for row in shown)

    def test_factor_is_baseline_over_own_with_its_interval(self, shown):
        by_slug = {row.slug: row for row in shown}
        fast, base = by_slug["batched.xla"], by_slug["loop.eager"]
        assert fast.factor == pytest.approx(base.median_s / fast.median_s)
        assert fast.factor_low < fast.factor < fast.factor_high
        assert base.factor == 1.0 and base.factor_low is None

    def test_multiple_of_the_limit(self, shown, run):
        assert shown[0].of_limit == pytest.approx(shown[0].median_s / run.limit.seconds)

    @pytest.mark.parametrize(
        ("wanted", "chosen"),
        [(("map_fn.xla",), "map_fn.xla"), (("not.there", None), "map_fn.graph"), ((), "map_fn.graph")],
    )
    def test_baseline(self, run, wanted, chosen):
        assert rows.choose_baseline(run, *wanted) == chosen

    def test_baseline_without_what_is_usual_is_the_slowest(self):
        assert rows.choose_baseline(timed_run(map_fn__xla=0.3, batched__graph=0.1)) == "map_fn.xla"

    def test_baseline_is_never_one_that_computes_the_wrong_values(self):
        run = timed_run(loop__eager=0.3, map_fn__xla=0.2, batched__graph=0.1)
        wrong = [replace(m, outcome="wrong" if m.strategy == "loop.eager" else m.outcome) for m in run.measurements]
        assert rows.choose_baseline(run) == "loop.eager"
        assert rows.choose_baseline(replace(run, measurements=wrong), "loop.eager") == "map_fn.xla"

    def test_a_run_with_nothing_in_it_yet(self):
        empty = replace(timed_run(), ranking=[])
        assert rows.make(empty) == []
        assert latency.frame([], None).empty and memory.frame([]).empty
        assert "none has been measured" in latency.takeaway([])
