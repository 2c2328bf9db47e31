"""The one file of golden tests that names anything below the command line: where that moves, this file follows, and
the tests and their figures stay."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from streamlit.testing.v1 import AppTest

from measure import client
from measure.judge import analysis, sweep_findings
from measure.machine import environment
from measure.run import request
from measure.run.encoding import decode
from measure.store.queue import WorkerState
from tests.engine import measure_here
from tests.keeping import put
from tests.pages import FakeClient, StoredClient, calm, open_page
from tests.subjects import Subjects

Document = dict[str, Any]


def recompute(run_json: Document) -> Document:
    """Everything that is derived from the samples of a run file, as fields of a run file."""
    run = decode(json.dumps(run_json).encode())
    again: Document = msgspec.to_builtins((sweep_findings.analyse if run.kind == "sweep" else analysis.analyse)(run))
    return again


def scripts(asked: Document, slugs: Sequence[str]) -> dict[str, str]:
    """The script of each strategy for a request in the form of a run file: what is shown and what runs."""
    parsed = request.parse(asked)
    return {slug: request.script_of(parsed, slug) for slug in slugs}


@contextlib.contextmanager
def simulated() -> Iterator[None]:
    """What the command line measures meanwhile starts no process: `Subjects` answer."""
    with pytest.MonkeyPatch.context() as patch:
        measure_here(Subjects(latencies_s={"batched.graph": 0.001, "loop.eager": 0.02}), patch)
        yield


@contextlib.contextmanager
def server(home: Any, *kept: bytes) -> Iterator[Callable[[str, Mapping[str, str | list[str]]], "Page"]]:
    """``open(page, link)`` on a server in whose store there are these run files, on a machine with 8 GiB and GPUs."""
    with pytest.MonkeyPatch.context() as patch:
        behind = StoredClient(home)
        behind.state = WorkerState("ready", "", ("CPU:0", "GPU:0", "GPU:3"))
        for data in kept:
            put(behind.store, decode(data))
        patch.setattr(client, "shared", lambda: behind)
        patch.setattr(environment, "available_memory", lambda: 8 * 2**30)
        yield lambda page, link: Page(behind, open_page(page, **link))


@dataclass
class Page:
    server: FakeClient
    app: AppTest

    @property
    def warnings(self) -> str:
        """What the page says of wrong values, without the signs that escaping puts in."""
        return " ".join(each.value for each in self.app.warning).replace("\\", "").replace("\u2060", "")

    def run(self) -> Document | None:
        """Press Run: what is asked for, as a run file has it, with ``axes`` of a sweep; None where Run is disabled."""
        if (button := self.app.button(key="run")).disabled:
            return None
        calm(button.click().run())
        for swept in self.server.submitted_sweeps:
            return {**msgspec.to_builtins(swept.base.record()), "axes": msgspec.to_builtins(list(swept.axes))}
        record: Document = msgspec.to_builtins(self.server.submitted[0].record())
        return record
