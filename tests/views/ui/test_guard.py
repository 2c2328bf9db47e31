"""Pages give way to what is measured: threads that serve and draw them have a lower priority than older ones, and than
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
import json, os, queue, subprocess, sys, threading
from measure.pool.process import Python
from views.ui import guard

NICE = "import os; print(os.getpriority(os.PRIO_PROCESS, 0))"
asked, said = queue.Queue(), queue.Queue()

def measure():
    asked.get()
    said.put([os.getpriority(os.PRIO_PROCESS, 0), int(subprocess.check_output([sys.executable, "-c", NICE]))])

def start_worker():
    with open(sys.argv[1], "w+") as printed:
        Python(NICE, stdin=subprocess.DEVNULL, output=printed, environment={}).end(60.0)
        printed.seek(0)
        return int(printed.read())

def draw():
    guard.give_way()
    said.put([os.getpriority(os.PRIO_PROCESS, 0), start_worker()])

start_worker()  # as the app does when it is loaded
threading.Thread(target=measure).start()
guard.serve()
threading.Thread(target=draw).start()
drawing = said.get()
asked.put(None)
print(json.dumps({"drawing": drawing, "serving": os.getpriority(os.PRIO_PROCESS, 0), "measuring": said.get()}))
"""


@pytest.mark.usefixtures("live")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux alone has priorities of threads")
def test_pages_give_way_to_what_is_measured_and_nothing_else_does(tmp_path: Path) -> None:
    own = os.getpriority(os.PRIO_PROCESS, 0)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "printed")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=RUN_S)
    least = max(own, NICE)
    assert json.loads(done.stdout) == {"drawing": [least, own], "serving": least, "measuring": [own, own]}
