"""A client and a worker of their own for tests of sweeps, on simulated subjects."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.deadlines import RUN_S
from tests.engine import Own, running
from tests.subjects import Subjects


@pytest.fixture
def run_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Subjects], Own]]:
    """``run_on(subjects)``: a client whose worker has these; who is silent is never given up."""
    monkeypatch.setenv("MAPBENCH_LOCK", str(tmp_path / "measure.lock"))
    with ExitStack() as stack:
        yield lambda subjects: stack.enter_context(running(subjects, tmp_path, timeout_floor_s=10 * RUN_S))
