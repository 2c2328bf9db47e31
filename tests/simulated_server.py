"""The app on simulated subjects: ``python -m tests.simulated_server run app.py`` in place of ``python -m streamlit``.

All of it is the app's own but what is measured: TensorFlow cannot be imported, calls take what is said here, and the
samples of a batch of `HELD_BATCH` come only once there is a file `GO_ON` in the folder of the runs.
"""

import os
import re
import sys
import threading
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace
from streamlit.web import cli

from measure import client, making
from measure.engine.bench import Settings
from measure.pool.launcher import Event, Events, HostState
from measure.run import place
from measure.store.store import Store
from measure.subject.messages import Spec
from measure.worker import Worker
from tests.subjects import RATES, Message, Subjects

HELD_BATCH = 400
GO_ON = "go_on"
# So far apart that a verdict is the same every time.
LATENCIES_S = {"batched.graph": 1e-3, "map_fn.graph": 2e-2, "map_fn.eager": 5e-2, "loop.eager": 0.1}
_LOOK_S = 0.05


@dataclass
class HeldSubjects(Subjects):
    """Subjects of which some keep their runs waiting."""

    held: set[int] = field(default_factory=set)
    waiting: list[tuple[int, Message]] = field(default_factory=list)  # what they were told

    def state(self) -> HostState:
        return HostState("ready", "", ("CPU:0",), {"gpus": [], "cuda": None, "cudnn": None})

    def start(self, spec: Spec, events: Events) -> int:
        subject = super().start(spec, events)
        if re.search(rf"\bbatch={HELD_BATCH}\b", spec.script):
            self.held.add(subject)
        return subject

    def send(self, subject: int, message: Message) -> None:
        if subject in self.held and message["op"] == "turn":
            self.waiting.append((subject, message))
        else:
            super().send(subject, message)

    def next(self, events: Events, timeout_s: float) -> Event | None:
        if self.waiting and (place.home() / GO_ON).exists():
            for subject, message in self.waiting:
                super().send(subject, message)
            self.waiting.clear()
        return super().next(events, min(timeout_s, _LOOK_S))


if __name__ == "__main__":
    sys.modules["tensorflow"] = None  # type: ignore[assignment]
    rates = msgspec.to_builtins(replace(RATES, flops_per_s=1e10))
    subjects = HeldSubjects(
        latencies_s=LATENCIES_S, answers={"probes": lambda spec: [{"event": "rates", "rates": rates}]}
    )
    # A run that is held goes on until a test lets it go.
    making.bound_s = lambda *_, **__: 86_400.0
    os.environ |= dict.fromkeys(("MAPBENCH_RUN_S", "MAPBENCH_SWEEP_S"), "86400")
    making.SETTINGS = Settings(timeout_floor_s=3_600.0)
    worker = Worker(Store(), subjects, "a test")
    threading.Thread(target=worker.work, daemon=True).start()
    own = client.Client()
    client.shared = lambda: own
    cli.main(prog_name="streamlit")
