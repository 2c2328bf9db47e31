"""The app on simulated subjects: ``python -m tests.simulated_server run app.py`` in place of ``python -m streamlit``.

All of it is the app's own but what is measured: TensorFlow cannot be imported, calls take what is said here, and the
samples of a batch of `HELD_BATCH` come only once there is a file `GO_ON` in the folder of the runs.
"""

import os
import sys
import threading

import msgspec
from msgspec.structs import replace
from streamlit.web import cli

from measure import client, making
from measure.engine.bench import Settings
from measure.store.store import Store
from measure.worker import Worker
from tests.subjects import LATENCIES_S, RATES, HeldSubjects

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
