"""A worker, or an app with its worker, on simulated subjects: ``python -m tests.simulated_worker mapbench worker``, or
``… streamlit run app.py``.

All of it is Mapbench's own but what is measured, also in its children; and silence is noticed after other times.
"""

import os
import sys
from typing import Any

from streamlit.web import cli

from measure import agent, client, machines, making, worker
from measure.__main__ import main
from measure.engine.bench import Settings
from measure.pool.process import Python
from tests.deadlines import PACE
from tests.subjects import LATENCIES_S, HeldSubjects

# Longer than a machine is stopped, and than a scheduler takes to start. Another silence can be set for one whose
# dashboard is killed, and which measures nothing before while it cannot be asked.
SILENT = "MAPBENCH_TEST_SILENT_S"
LOST_S, SILENT_S, ANSWER_S = 12.0 * PACE, float(os.environ.get(SILENT, 60.0)) * PACE, 1.0 * PACE


def simulate() -> None:
    sys.modules["tensorflow"] = None  # type: ignore[assignment]
    making.SETTINGS = Settings(timeout_floor_s=3_600.0, probes=False, process_peaks=False)
    making.bound_s = lambda *_, **__: 86_400.0  # a run that is held goes on until a test lets it go
    worker.launcher = lambda *_: HeldSubjects(latencies_s=LATENCIES_S)
    client.Python = _python  # type: ignore[misc]
    machines.LOST_S, machines.ANSWER_S, agent.SILENT_S = LOST_S, ANSWER_S, SILENT_S


def _python(code: str, *arguments: str, **more: Any) -> Python:
    return Python(f"from tests.simulated_worker import simulate; simulate(); {code}", *arguments, **more)


if __name__ == "__main__":
    simulate()
    program, *words = sys.argv[1:]
    sys.exit(main(words) if program == "mapbench" else cli.main(words))
