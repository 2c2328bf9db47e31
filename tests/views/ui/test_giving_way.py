"""Pages give way to what is measured: threads that serve and draw them have a lower priority than older ones."""

import json
import os
import subprocess
import sys

import pytest

from tests.deadlines import RUN_S
from tests.engine import ROOT
from views.ui.giving_way import NICE

SCRIPT = """
import json, os, queue, subprocess, sys, threading
from views.ui import giving_way

asked, said = queue.Queue(), queue.Queue()

def measure():
    asked.get()
    child = "import os; print(os.getpriority(os.PRIO_PROCESS, 0))"
    said.put([os.getpriority(os.PRIO_PROCESS, 0), int(subprocess.check_output([sys.executable, "-c", child]))])

def draw():
    giving_way.give_way()
    said.put(os.getpriority(os.PRIO_PROCESS, 0))

threading.Thread(target=measure).start()
giving_way.serve()
threading.Thread(target=draw).start()
drawing = said.get()
asked.put(None)
print(json.dumps({"drawing": drawing, "serving": os.getpriority(os.PRIO_PROCESS, 0), "measuring": said.get()}))
"""


@pytest.mark.usefixtures("live")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux alone has priorities of threads")
def test_pages_give_way_to_what_is_measured_and_nothing_else_does() -> None:
    own = os.getpriority(os.PRIO_PROCESS, 0)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=True, timeout=RUN_S
    )
    least = max(own, NICE)
    assert json.loads(done.stdout) == {"drawing": least, "serving": least, "measuring": [own, own]}
