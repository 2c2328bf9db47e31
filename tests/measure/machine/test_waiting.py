"""The time for which a process waited for a processor, by the system's own counter."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from measure.machine.waiting import Waiting
from tests.engine import DEADLINE_S

# Keeps the processors busy that its parent may use, for as long as that one holds its input open.
_BUSY = "import select, sys\nwhile not select.select([sys.stdin], [], [], 0)[0]:\n    pass"


@pytest.fixture
def crowded() -> Iterator[None]:
    """This thread shares one processor with another process."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        with subprocess.Popen([sys.executable, "-c", _BUSY], stdin=subprocess.PIPE):
            yield
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.usefixtures("crowded")
def test_a_thread_that_shares_its_processor_waits() -> None:
    waiting = Waiting()
    before_s, end_s = waiting.seconds(), time.monotonic() + DEADLINE_S
    assert before_s >= 0
    while waiting.seconds() < before_s + 0.02:
        assert time.monotonic() < end_s, "it never waits"


def test_reading_the_counter_leaves_no_file_open() -> None:
    before = psutil.Process().num_fds()
    for _ in range(10):
        Waiting().seconds()
    assert psutil.Process().num_fds() <= before


def test_where_the_system_has_no_counter_nothing_ever_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, flags: int) -> int:
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "open", refuse)
    assert Waiting().seconds() == 0.0
