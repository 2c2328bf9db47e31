"""Pages without a browser and without TensorFlow: runners with nothing behind them, and the text of a page."""

import itertools
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure.engine.launcher import HostState
from measure.model.request import Request, RequestError
from measure.runner import Snapshot
from measure.store.store import Store
from tests import synthetic
from tests.engine import ROOT

RUN_ID = "0123456789abcdef01234567"
versions = itertools.count(100)  # the page keeps what it computed for a version of a run


class FakeRunner:
    """The runner's side of the page, with nothing behind it."""

    def __init__(self) -> None:
        self.snapshots: dict[str, Snapshot] = {}
        self.submitted: list[Request] = []
        self.cancelled: list[str] = []
        self.waiting: tuple[str, ...] = ()
        self.state = HostState("ready", "", ("CPU:0",))
        self.refusal: str | None = None

    def submit(self, request: Request, parent: str | None = None, owner: str = "") -> str:
        if self.refusal:
            raise RequestError(self.refusal)
        self.submitted.append(request)
        run = replace(synthetic.partial(0, RUN_ID), request=request.record())
        self.snapshots[RUN_ID] = Snapshot(run, "queued", position=2, version=1)
        return RUN_ID

    def snapshot(self, run_id: str) -> Snapshot | None:
        return self.snapshots.get(run_id)

    def cancel(self, run_id: str) -> None:
        self.cancelled.append(run_id)
        self.snapshots[run_id] = Snapshot(replace(synthetic.run(run_id), status="cancelled"), "finished", version=9)

    def wait(self, run_id: str, timeout_s: float | None = None) -> bool:
        return True

    def queue(self) -> tuple[str, ...]:
        return self.waiting

    def host(self) -> HostState:
        return self.state


class StoredRunner(FakeRunner):
    """A runner with a store, and nothing that measures."""

    def __init__(self, home: Path) -> None:
        super().__init__()
        self.store = Store(home)

    def snapshot(self, run_id: str) -> Snapshot | None:
        if run_id in self.snapshots:
            return self.snapshots[run_id]
        kept = self.store.look(run_id)
        return kept and Snapshot(kept.run, "finished", version=kept.version, imported=kept.imported)

    def delete(self, ids: Iterable[str], owner: str | None = None) -> list[str]:
        return self.store.delete(ids, owner)


def open_page(page: str = "compare", **params: str | list[str]) -> AppTest:
    """Open a page of the app with these query parameters, as it is drawn first."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    if page != "compare":  # which is the app's first
        app.switch_page(f"views/pages/{page}.py")
    for name, value in params.items():
        app.query_params[name] = value
    return calm(app.run())


def calm(app: AppTest) -> AppTest:
    assert not app.exception, app.exception
    assert not app.error, [error.value for error in app.error]
    return app


def words(app: AppTest) -> str:
    """Return all text of a page, without the signs that escaping puts in."""
    kinds = ("markdown", "caption", "html", "warning", "info", "metric")
    found = [str(element.value) for kind in kinds for element in app.get(kind)]
    return " ".join(found).replace("\\", "").replace("\u2060", "")
