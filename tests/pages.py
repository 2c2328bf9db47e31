"""Pages without a browser and without TensorFlow: clients with nothing behind them, and the text of a page."""

import itertools
import re
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure.admission import NOBODY, Visitor
from measure.client import Client
from measure.hosting import Limits
from measure.run import why
from measure.run.encoding import decode
from measure.run.request import Request, RequestError
from measure.run.run import Run
from measure.run.sweep_request import SweepRequest
from measure.store.queue import WorkerState
from measure.store.store import Snapshot, Store
from tests import synthetic
from tests.deadlines import ANSWER_S
from tests.engine import ROOT

RUN_ID = "0123456789abcdef01234567"
versions = itertools.count(100)  # the page keeps what it computed for a version of a run


class FakeClient:
    """The client's side of the page, with nothing behind it."""

    def __init__(self) -> None:
        self.snapshots: dict[str, Snapshot] = {}
        self.submitted: list[Request] = []
        self.submitted_sweeps: list[SweepRequest] = []
        # Of each sweep the run that it repeats, and the one that it goes on with.
        self.sweeps_of: list[tuple[str | None, str | None]] = []
        self.cancelled: list[str] = []
        self.stopped: list[str] = []
        self.waiting: tuple[str, ...] = ()
        self.state = WorkerState("ready", "", ("CPU:0",))
        self.others: dict[str, WorkerState] = {}
        # The id of what is asked for next.
        self.new_id = lambda: RUN_ID
        self.refusal: str | None = None
        self.store: Any = SimpleNamespace(artifacts=lambda run_id, slug: [why.GRAPH, why.TRACE])
        # The run that is explained.
        self.explained: Snapshot | None = None
        # What other programs use of the machine now.
        self.load = SimpleNamespace(cores_of_others=lambda: 0.0, slowdown=lambda: 1.0)

    def submit(
        self, request: Any, parent: str | None = None, visitor: Visitor = NOBODY, *, continue_from: str | None = None
    ) -> str:
        if self.refusal:
            raise RequestError(self.refusal)
        if isinstance(request, Request):
            self.submitted.append(request)
            return self._queue(replace(synthetic.partial(0), request=request.record()))
        self.submitted_sweeps.append(request)
        self.sweeps_of.append((parent, continue_from))
        swept = synthetic.sweep()
        return self._queue(replace(swept, request=request.base.record(), axes=list(request.axes), points=[]))

    def _queue(self, run: Run) -> str:
        self.show(replace(run, id=(run_id := self.new_id())), "queued", position=2)
        return run_id

    def show(self, run: Run, state: Any = "finished", **more: Any) -> None:
        """Have a run as it is, or while it waits or is measured."""
        self.snapshots[run.id] = Snapshot(run, state, version=next(versions), **more)

    def snapshot(self, run_id: str) -> Snapshot | None:
        return self.snapshots.get(run_id)

    def cancel(self, run_id: str, visitor: Visitor = NOBODY) -> None:
        self.cancelled.append(run_id)
        self.snapshots[run_id] = Snapshot(replace(synthetic.run(run_id), status="cancelled"), "finished", version=9)

    def stop(self, run_id: str, visitor: Visitor = NOBODY) -> None:
        self.stopped.append(run_id)

    def wait(self, run_id: str, timeout_s: float | None = None) -> bool:
        return True

    def queue(self) -> tuple[str, ...]:
        return self.waiting

    def going_on(self) -> Snapshot | None:
        return self.snapshots.get(self.waiting[0]) if self.waiting else None

    def host(self) -> WorkerState:
        return self.state

    def machines(self) -> dict[str, WorkerState]:
        return self.others

    limits = Limits()
    places, submit_to_all, _worker = Client.places, Client.submit_to_all, Client._worker
    forecast = Client.forecast

    def explain(self, run_id: str, visitor: Visitor = NOBODY) -> None:
        if self.refusal:
            raise RequestError(self.refusal)
        self.explained = replace(self.snapshots[run_id], state="running", message="explaining loop.eager, 1 of 2")

    def explanation(self, run_id: str) -> tuple[str, Snapshot] | None:
        return ("a" * 24, self.explained) if self.explained else None


class StoredClient(FakeClient):
    """A client with a store, and nothing that measures."""

    def __init__(self, home: Path) -> None:
        super().__init__()
        self.store = Store(home)

    def snapshot(self, run_id: str) -> Snapshot | None:
        if run_id in self.snapshots:
            return self.snapshots[run_id]
        return self.store.look(run_id)

    def delete(self, ids: Iterable[str], visitor: Visitor = NOBODY) -> list[str]:
        return self.store.delete(ids, None if visitor == NOBODY else visitor.owner)


def example() -> Run:
    """The run of claims that comes with Mapbench."""
    return decode((ROOT / "views/example_claims.json").read_bytes())


def open_page(page: str = "compare", **params: str | list[str]) -> AppTest:
    """Open a page of the app with these query parameters, as it is drawn first, without a fault."""
    return calm(drawn(page, **params))


def drawn(page: str = "compare", **params: str | list[str]) -> AppTest:
    """The same, with whatever fault it shows."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=ANSWER_S)
    if page != "compare":  # which is the app's first
        app.switch_page(f"views/pages/{page}.py")
    for name, value in params.items():
        app.query_params[name] = value
    return app.run()


def calm(app: AppTest) -> AppTest:
    assert not app.exception, app.exception
    assert not app.error, [error.value for error in app.error]
    return app


def press(app: AppTest, key: str) -> AppTest:
    return calm(app.button(key=key).click().run())


def buttons(app: AppTest) -> set[str | None]:
    return {button.key for button in app.button}


def chosen(app: AppTest) -> set[str]:
    """The strategies that are chosen in the grid."""
    return {box.label for box in app.checkbox if box.value}


def cannot_run(app: AppTest) -> bool:
    return app.button(key="run").disabled


def params(app: AppTest) -> dict[str, list[str]]:
    """What stands in the address."""
    return {name: [value] if isinstance(value, str) else list(value) for name, value in app.query_params.items()}


def words(app: AppTest) -> str:
    """Return all text of a page, without the signs that escaping puts in, and with plain spaces."""
    kinds = ("markdown", "caption", "html", "warning", "info", "metric")
    found = [str(element.value) for kind in kinds for element in app.get(kind)]
    found += [element.proto.text for element in app.get("progress")]
    # The names of strategies in a headline are in code font.
    text = re.sub('<code style="font-size:.92em">([^<]*)</code>', r"\1", " ".join(found))
    return text.replace("\\", "").replace("\u2060", "").replace("\u00a0", " ")
