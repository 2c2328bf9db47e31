"""Processes end with all that they have started."""

import os
import subprocess
import tempfile

import psutil
import pytest

from measure.pool.process import Python
from tests.deadlines import GONE_S
from tests.engine import eventually, is_alive

LEAVES_ONE = """
import os, subprocess, sys, time
left = subprocess.Popen(["sleep", "1000"], start_new_session=True)
print(left.pid, flush=True)
if sys.argv[1] == "hangs":
    time.sleep(1000)
sys.exit(3)
"""


@pytest.mark.usefixtures("live")
@pytest.mark.parametrize(("what", "status"), [("exits", 3), ("hangs", -9)])
def test_what_a_process_leaves_behind_ends_with_it(what: str, status: int) -> None:
    with tempfile.TemporaryFile() as output:
        process = Python(LEAVES_ONE, what, stdin=subprocess.DEVNULL, output=output, environment={"MAPBENCH_SAID": "x"})

        def printed() -> bytes:
            output.seek(0)
            return output.read()

        left = psutil.Process(int(eventually(lambda: printed().endswith(b"\n") and printed(), "it has started one")))
        assert left.environ()["MAPBENCH_SAID"] == "x" and os.getpgid(process.pid) == process.pid != os.getpgid(left.pid)
        if what == "exits":
            eventually(lambda: process.status is not None, "it has ended", GONE_S)
        assert process.end() == status
        assert not is_alive(left.pid)
