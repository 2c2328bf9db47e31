"""Files of a person's own: never executed here, harmless where broken, and one is all that adding something takes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from streamlit.testing.v1 import AppTest

import strategies
import workloads
from measure import runner
from measure.engine.bench import Settings
from measure.engine.host_launcher import HostLauncher
from measure.model import forecast, listing
from measure.model.request import parse
from tests.deadlines import ANSWER_S, GONE_S, RUN_S
from tests.engine import ROOT, eventually, is_alive
from tests.grid import untimed
from tests.pages import FakeRunner, words
from tests.strategies.test_strategies import EVERY_OTHER
from tests.workloads.test_workloads import CUBE
from workloads import own
from workloads.case import Case
from workloads.discovery import DiscoveryError
from workloads.spec import Leaf


@pytest.fixture
def home(live: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a folder for workloads and one for mappers, whose files are executed in processes of their own."""
    for name in ("workloads", "mappers"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    return tmp_path


# Notes which process executes it.
WITNESS = """
import os, pathlib
pathlib.Path(__file__).with_suffix(".pid").write_text(str(os.getpid()))
"""


def test_files_in_the_home_are_found_and_executed_elsewhere(home: Path) -> None:
    with workloads.held(), strategies.held():
        (home / "workloads" / "cube.py").write_text(WITNESS + CUBE)
        (home / "mappers" / "through_dataset.py").write_text(WITNESS + EVERY_OTHER)
        assert "cube" not in workloads.names(), "while a page is drawn, files are looked at once"
    assert workloads.names()[-1] == "cube"
    assert strategies.mapper("through_dataset").modes == ("eager", "graph")
    pids = {int(path.read_text()) for path in home.glob("*/*.pid")}
    assert len(pids) == 2 and os.getpid() not in pids
    assert not any(str(home) in str(getattr(module, "__file__", "")) for module in list(sys.modules.values()))


def test_one_setting_turns_them_off_where_strangers_come(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "workloads" / "cube.py").write_text(WITNESS + CUBE)
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    assert "cube" not in workloads.names() and workloads.broken() == {}
    assert not list(home.glob("*/*.pid"))
    with pytest.raises(DiscoveryError, match="MAPBENCH_HOSTED is set"):
        workloads.in_file(home / "workloads" / "cube.py")
    monkeypatch.setenv("MAPBENCH_HOSTED", "0")
    assert "cube" in workloads.names()


HARMFUL = {
    "exits": ("import sys\nsys.exit(3)", "cannot be loaded: SystemExit: 3 (line 2)"),
    "ends_its_process": ("import os\nos._exit(3)", "cannot be loaded: it ended its process with status 3"),
    "aborts": ("import os\nos.abort()", "cannot be loaded: it ended its process by signal SIGABRT"),
    "is_no_python": ("def (", "cannot be loaded: SyntaxError: invalid syntax (is_no_python.py, line 1)"),
    "offers_a_number": (
        CUBE.replace('title="Cube"', "title=5"), "offers what is not valid: Expected `str`, got `int` - at `$.title`",
    ),
    "offers_an_object": (
        CUBE.replace('title="Cube"', "title=object"), "cannot be loaded: TypeError: <class 'object'> is no plain data",
    ),
    "fails_at_its_most": (
        CUBE.replace("def cost():", "def cost(batch):\n    assert batch < 100, 'too many'"),
        "cannot be loaded: AssertionError: too many (line 29)",
    ),
}  # fmt: skip


def test_whatever_a_file_does_costs_only_itself(home: Path) -> None:
    for name, (text, _) in HARMFUL.items():
        (home / "workloads" / f"{name}.py").write_text(text)
    (home / "workloads" / "talks.py").write_text(f"print('x' * 100_000)\n{CUBE}")
    assert workloads.names()[-1] == "cube"
    said = {Path(path).stem: message.replace(".py: ", ".py ", 1) for path, message in workloads.broken().items()}
    assert said == {name: f"{home}/workloads/{name}.py {message}" for name, (_, message) in HARMFUL.items()}


def test_what_a_strategy_leaves_out_of_an_element_function_in_a_file_is_wrong(home: Path, host: HostLauncher) -> None:
    helper = "def by_helper(x):\n    tf.print('one')\n    return x**3\n\n\ndef element"
    printing = CUBE.replace("    return x**3", "    return by_helper(x)", 1).replace("def element", helper, 1)
    text = printing.replace("rewrites={}", "rewrites={}, helpers=(by_helper,)")
    (home / "workloads" / "cube.py").write_text(text)
    asked = parse({"workload": "cube", "strategies": ["map_fn.graph", "vectorized_map.graph"]})
    right, wrong = untimed(asked, host, Settings(timeout_floor_s=RUN_S)).measurements
    assert right.error is None, right.error
    assert wrong.outcome == "wrong" and wrong.error is not None and "it prints 1 line" in wrong.error.message


def test_a_file_that_does_not_end_is_ended(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "LOAD_LIMIT_S", 0.1)
    path = home / "mappers" / "hangs.py"
    path.write_text("while True:\n    pass\n")
    assert strategies.broken() == {str(path): f"{path} cannot be loaded: it took longer than 0.1 s"}
    lines = [process.info["cmdline"] for process in psutil.process_iter(["cmdline"])]
    assert not [line for line in lines if str(path) in (line or ())]


# --- what is told is what the file says ------------------------------------------------------------------------------


def test_tuples_lists_and_dicts_of_leaves_can_be_told_apart() -> None:
    leaf = Leaf((3,), "float32")
    nest = {"pair": (leaf, [leaf, leaf]), "names": {"shape": leaf, "dtype": leaf}, "one": (leaf,)}
    assert own.leaves_from_wire(json.loads(json.dumps(own.leaves_to_wire(nest), default=vars))) == nest


# --- functions that fail after all -----------------------------------------------------------------------------------


def test_a_function_that_fails_breaks_its_file_until_that_changes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home / "workloads" / "cube.py"
    for body, says in (
        ("raise ValueError('three')", "ValueError: three"),
        ("import os; os._exit(4)", "ended its process with status 4"),
        ("return 3", "Expected `object`, got `int`"),
        ("while True: pass", "took longer than 2 s"),
    ):
        path.write_text(CUBE.replace("def cost():", f"def cost(batch):\n    if batch == 3:\n        {body}"))
        cube = workloads.get("cube")
        assert forecast.estimate(Case(cube, {"batch": 5}, "float32"), "loop.eager").events
        if "longer" in says:
            monkeypatch.setattr(own, "ANSWER_LIMIT_S", 2.0)
        with pytest.raises(DiscoveryError) as caught:
            forecast.estimate(Case(cube, {"batch": 3}, "float32"), "loop.eager")
        assert str(caught.value) == f"{path}: cost(batch=3) fails: {says}"
        assert "cube" not in workloads.names() and workloads.broken() == {str(path): str(caught.value)}
    monkeypatch.undo()
    monkeypatch.setenv("MAPBENCH_HOME", str(home))
    path.write_text(CUBE)
    assert "cube" in workloads.names() and workloads.broken() == {}


TELLS_ITS_PROCESS = CUBE.replace("def cost():", "def cost(batch):\n    import os").replace(
    "flops=6", "flops=os.getpid()"
)


def test_a_process_that_has_ended_is_started_again_and_none_outlives_who_asks(home: Path) -> None:
    (home / "workloads" / "cube.py").write_text(TELLS_ITS_PROCESS)
    cube = workloads.get("cube")
    first = cube.cost(batch=1).flops
    assert cube.cost(batch=2).flops == first, "one process answers as long as it is asked"
    os.kill(first, signal.SIGKILL)
    assert cube.cost(batch=3).flops != first
    assert cube.cost(batch=1).flops == first, "an answer is kept"

    asks = "import workloads\nprint(workloads.get('cube').cost(batch=1).flops, flush=True)\ninput()"
    process = subprocess.Popen(
        [sys.executable, "-c", asks], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    assert is_alive(pid)
    process.kill()
    process.communicate()
    eventually(lambda: not is_alive(pid), "the file's process has ended", GONE_S)


# --- in the app and on the command line ------------------------------------------------------------------------------


def test_files_are_offered_and_broken_ones_are_said_on_the_page_and_in_the_list(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "workloads" / "mine.py").write_text("WORKLOAD = squares")
    (home / "workloads" / "cube.py").write_text(CUBE)
    (home / "mappers" / "through_dataset.py").write_text(EVERY_OTHER)
    says = "mine.py cannot be loaded: NameError: name 'squares' is not defined (line 1)"
    fake = FakeRunner()
    monkeypatch.setattr(runner, "shared", lambda: fake)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=ANSWER_S)
    app.query_params["workload"] = "cube"
    app.run()
    assert not app.exception and not app.error
    assert says in words(app) and "Cube" in words(app)
    assert {"loop.eager", "through_dataset.graph"} <= {box.label for box in app.checkbox}
    assert listing.broken() == {f"{home}/workloads/mine.py": f"{home}/workloads/{says}"}
