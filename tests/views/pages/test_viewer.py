"""A server that shows runs and measures none: without a browser, the whole page; and the runner behind it."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure import runner
from measure.judge import answer
from measure.model.request import RequestError
from measure.model.run import Run
from measure.model.run_file import decode
from measure.store.store import Store
from measure.sweep.request import of_run
from tests import synthetic
from tests.engine import ROOT, small_request
from tests.pages import open_page, words
from views.pages import texts
from workloads.functions import Given

COMPARED, SWEPT, CLAIMED = "a" * 24, "b" * 24, "c" * 24


@pytest.fixture
def viewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[runner.Runner]:
    monkeypatch.setenv("MAPBENCH_VIEWER", "1")
    own = runner.Runner(store_=Store(tmp_path))
    monkeypatch.setattr(runner, "shared", lambda: own)
    yield own
    own.close()


def kept(viewer: runner.Runner) -> dict[str, Run]:
    """A comparison, a sweep and a run of claims, as they are imported."""
    claims = decode((ROOT / "views/example_claims.json").read_bytes())
    runs = {
        "compare": synthetic.run(COMPARED),
        "sweep": synthetic.sweep(SWEPT),
        "claims": replace(claims, id=CLAIMED),
    }
    for run in runs.values():
        viewer.store.add(run, "")
    return runs


def measuring(app: AppTest) -> list[str]:
    """The buttons of a page that measure, or lead to that."""
    beginnings = ("Run", "Measure", "Continue", "Explain", "Settle", "Try", "▸", "▾", "Write", "Take")
    return [button.label for button in app.button if button.label.startswith(beginnings)]


@pytest.mark.parametrize("page", ["compare", "sweep", "claims"])
def test_a_page_without_a_run_says_that_nothing_is_measured_here(viewer: runner.Runner, page: str):
    app = open_page(page)
    assert texts.VIEWER in words(app)
    assert not measuring(app)


@pytest.mark.parametrize("page", ["compare", "sweep", "claims"])
def test_the_link_of_a_run_shows_it_without_a_button_that_measures(viewer: runner.Runner, page: str):
    run = kept(viewer)[page]
    app = open_page(page, run=run.id)
    assert answer.heading(run) in words(app)
    assert not measuring(app)


def test_the_claims_of_runs_from_elsewhere_are_the_newest_verdicts(viewer: runner.Runner):
    kept(viewer)
    app = open_page("claims")
    assert texts.EXAMPLE not in words(app)
    assert not measuring(app)


def test_a_run_is_imported_and_listed(viewer: runner.Runner):
    kept(viewer)
    app = open_page("runs")
    assert len(app.dataframe[0].value) == 3


def test_whatever_would_be_measured_is_refused_and_no_process_is_started(viewer: runner.Runner):
    before = psutil.Process().children(recursive=True)
    runs = kept(viewer)
    for ask in (
        lambda: viewer.submit(small_request("map_fn.graph")),
        lambda: viewer.submit_sweep(of_run(runs["sweep"])),
        lambda: viewer.submit_claims(),
        lambda: viewer.explain(COMPARED),
        lambda: viewer.give(Given(code="f = abs", function="f", elems="f")),
    ):
        with pytest.raises(RequestError, match="MAPBENCH_VIEWER is set"):
            ask()
    assert viewer.queue() == ()
    assert psutil.Process().children(recursive=True) == before
