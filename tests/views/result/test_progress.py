"""How often a page that watches a run looks at it, and when it draws it anew."""

from measure.client import Snapshot
from tests import synthetic
from tests.pages import RUN_ID
from views.result.progress import Drawn, poll_s

SLUG = synthetic.SWEPT[0]
DRAWN = Drawn(version=1, state="running", at_s=100.0)


def snapshot(stage: str, version: int = 2, state: str = "running") -> Snapshot:
    return Snapshot(synthetic.partial(2, RUN_ID), state, stages={SLUG: stage}, version=version)


def test_results_are_drawn_at_once_but_seldom_while_latencies_are_timed() -> None:
    for of, now_s, outdated in (
        (snapshot("memory"), 100.5, True),
        (snapshot("sampling"), 107.9, False),
        (snapshot("first call"), 107.9, False),
        (snapshot("sampling"), 108.0, True),
        (snapshot("process peak"), 101.0, True),
        (snapshot("sampling", version=1), 200.0, False),
        (snapshot("done", version=1, state="finished"), 100.1, True),
    ):
        assert DRAWN.is_outdated(of, now_s) == outdated
    assert poll_s(snapshot("sampling")) > poll_s(snapshot("memory"))
