"""Pages give way to what is measured: all threads that serve and draw them, older ones too, have a lower priority than
a worker, whichever thread starts it again."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deadlines import RUN_S
from tests.engine import ROOT
from views.ui.guard import NICE

SCRIPT = """
import json, os, subprocess, sys, threading
from measure.pool.process import Python
from views.ui import guard

NICE = "import os; print(os.getpriority(os.PRIO_PROCESS, 0))"

def start_worker():
    with open(sys.argv[1], "w+") as printed:
        Python(NICE, stdin=subprocess.DEVNULL, output=printed, environment={}).end(60.0)
        printed.seek(0)
        return int(printed.read())

def draw():
    guard.give_way()
    nice = {name: os.getpriority(os.PRIO_PROCESS, thread.native_id) for name, thread in threads.items()}
    print(json.dumps(nice | {"worker": start_worker()}))

start_worker()  # as the app does when it is loaded
threads = {"serving": threading.current_thread(), "older": threading.Thread(target=threading.Event().wait, daemon=True)}
threads["older"].start()
guard.serve()
threads["drawing"] = threading.Thread(target=draw)
threads["drawing"].start()
threads["drawing"].join()
"""


@pytest.mark.usefixtures("live")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux alone has priorities of threads")
def test_pages_give_way_to_what_is_measured_and_nothing_else_does(tmp_path: Path) -> None:
    own = os.getpriority(os.PRIO_PROCESS, 0)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "printed")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=RUN_S)
    least = max(own, NICE)
    assert json.loads(done.stdout) == {"serving": least, "older": least, "drawing": least, "worker": own}
