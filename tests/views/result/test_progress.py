"""How often a page that watches a run looks at it, and when it draws it anew."""

import pytest
from msgspec.structs import replace

from measure.runner import Snapshot
from tests import synthetic
from tests.pages import RUN_ID
from views.result.progress import Drawn, poll_s

SLUG = synthetic.run().measurements[0].strategy


def snapshot(stage: str, version: int = 2, state: str = "running") -> Snapshot:
    return Snapshot(synthetic.partial(2, RUN_ID), state, stages={SLUG: stage}, version=version)


DRAWN = Drawn(version=1, state="running", at_s=100.0)


@pytest.mark.parametrize(
    ("of", "now_s", "outdated"),
    [
        (snapshot("memory"), 100.5, True),
        (snapshot("sampling"), 107.9, False),
        (snapshot("first call"), 107.9, False),
        (snapshot("sampling"), 108.0, True),
        (snapshot("process peak"), 101.0, True),
        (snapshot("sampling", version=1), 200.0, False),
        (snapshot("done", version=1, state="finished"), 100.1, True),
    ],
)
def test_results_are_drawn_at_once_but_seldom_while_latencies_are_timed(of: Snapshot, now_s: float, outdated: bool):
    assert DRAWN.is_outdated(of, now_s) == outdated


def test_a_sweep_shows_its_first_line_at_once_and_further_ones_seldom():
    sweep = synthetic.sweep(RUN_ID)
    timing = {SLUG: "sampling"}
    without = Snapshot(replace(sweep, points=[]), "running", stages=timing, version=2)
    assert DRAWN.is_outdated(without, 100.5)
    assert not DRAWN.is_outdated(Snapshot(sweep, "running", stages=timing, version=2), 100.5)


def test_a_run_is_looked_at_less_often_while_it_is_timed():
    assert poll_s(snapshot("sampling")) > poll_s(snapshot("memory"))
