"""Files of a person's own: never executed here, harmless where broken, and one is all that adding something takes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from streamlit.testing.v1 import AppTest

import strategies
import workloads
from measure import __main__ as command_line
from measure import runner
from measure.engine.bench import Settings
from measure.engine.host_launcher import HostLauncher
from measure.model import forecast
from measure.model.request import RequestError, parse
from measure.model.run_file import decode
from strategies import planning, script
from strategies.spec import Mapper
from tests import forked, synthetic
from tests.engine import DEADLINE_S, ROOT, environment, eventually, is_alive, running
from tests.grid import untimed
from tests.measure.test_command_line import _Runner
from tests.pages import FakeRunner, words
from tests.strategies.test_strategies import EVERY_OTHER
from tests.subjects import Subjects
from tests.workloads.test_workloads import CUBE
from workloads import own
from workloads.case import Case
from workloads.discovery import DiscoveryError
from workloads.own import OwnFile
from workloads.spec import Leaf, Workload


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a folder for workloads and one for mappers."""
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
    (home / "workloads" / "cube.py").write_text(WITNESS + CUBE)
    (home / "mappers" / "through_dataset.py").write_text(WITNESS + EVERY_OTHER)
    assert workloads.names()[-1] == "cube"
    assert strategies.mapper("through_dataset").modes == ("eager", "graph")
    pids = {int(path.read_text()) for path in home.glob("*/*.pid")}
    assert len(pids) == 2 and os.getpid() not in pids
    assert not any(str(home) in str(getattr(module, "__file__", "")) for module in list(sys.modules.values()))


def test_while_a_page_is_drawn_the_files_are_looked_at_once(home: Path) -> None:
    with workloads.held(), strategies.held():
        (home / "workloads" / "cube.py").write_text(CUBE)
        (home / "mappers" / "through_dataset.py").write_text(EVERY_OTHER)
        assert "cube" not in workloads.names()
        assert "through_dataset" not in {mapper.slug for mapper in strategies.mappers()}
    assert "cube" in workloads.names() and strategies.mapper("through_dataset").slug == "through_dataset"


def test_one_setting_turns_them_off_where_strangers_come(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "workloads" / "cube.py").write_text(WITNESS + CUBE)
    (home / "broken.py").write_text("1 / 0")
    monkeypatch.setenv("MAPBENCH_WORKLOADS", str(home / "broken.py"))
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    assert "cube" not in workloads.names() and workloads.broken() == {}
    assert not list(home.glob("*/*.pid"))
    with pytest.raises(DiscoveryError, match="MAPBENCH_HOSTED is set"):
        workloads.in_file(home / "workloads" / "cube.py")
    monkeypatch.setenv("MAPBENCH_HOSTED", "0")
    assert "cube" in workloads.names() and list(workloads.broken()) == [str(home / "broken.py")]


HARMFUL = {
    "exits": ("import sys\nsys.exit(3)", "cannot be loaded: SystemExit: 3 (line 2)"),
    "ends_its_process": ("import os\nos._exit(3)", "cannot be loaded: it ended its process with status 3"),
    "aborts": ("import os\nos.abort()", "cannot be loaded: it ended its process by signal SIGABRT"),
    "is_interrupted": ("raise KeyboardInterrupt", "cannot be loaded: KeyboardInterrupt: "),
    "is_no_python": ("def (", "cannot be loaded: SyntaxError: invalid syntax (is_no_python.py, line 1)"),
    "offers_a_number": (
        CUBE.replace('title="Cube"', "title=5"), "offers what is not valid: Expected `str`, got `int` - at `$.title`",
    ),
    "offers_an_object": (
        CUBE.replace('title="Cube"', "title=object"), "cannot be loaded: TypeError: <class 'object'> is no plain data",
    ),
    "offers_a_lambda": (
        CUBE.replace("def element(x):\n    return x**3", "element = lambda x: x**3"),
        "<function <lambda>> cannot be put into a script: a top-level 'def' can",
    ),
    "has_no_such_dtype": (
        CUBE.replace("Leaf((3,), dtype)", "Leaf((3,), 'flaot32')"),
        "cube: leaf: a Leaf has the dtype 'flaot32': choose one of bool, int8, uint8, int16, uint16, int32, uint32, "
        "int64, uint64, bfloat16, float16, float32, float64, complex64, complex128, string",
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


def test_a_reference_that_needs_tensorflow_is_refused_in_a_sentence(home: Path) -> None:
    in_tensorflow = CUBE.replace("x.astype(np.float64) ** 3", "tf.cast(x, tf.float64) ** 3")
    (home / "workloads" / "cube.py").write_text(in_tensorflow)
    with (
        running(Subjects(), home) as measuring,
        pytest.raises(RequestError, match="the reference of cube would use tf"),
    ):
        measuring.submit(parse({"workload": "cube"}))


LEAVES = """def leaf(dtype):
    return Leaf((3,), dtype)


def number():
    return Leaf((3,), "float32")"""
# Text that is turned into numbers.
TO_NUMBER = (
    CUBE.replace("uniform(size=(batch, 3)).astype(dtype)", "integers(0, 1000, (batch, 3)).astype(bytes)")
    .replace("return x**3", "return tf.strings.to_number(x)")
    .replace("x.astype(np.float64) ** 3", "x.astype(np.float64)")
    .replace("def leaf(dtype):\n    return Leaf((3,), dtype)", LEAVES)
    .replace('dtypes=("float32",)', 'dtypes=("string",)')
    .replace("element_output=leaf", "element_output=number")
)


def test_text_can_be_mapped_over(home: Path, host: HostLauncher) -> None:
    (home / "workloads" / "cube.py").write_text(TO_NUMBER)
    asked = parse({"workload": "cube", "strategies": ["loop.eager", "map_fn.graph", "vectorized_map.graph"]})
    run = untimed(asked, host, Settings(timeout_floor_s=60.0))
    assert [item.correctness and item.correctness.ok for item in run.measurements] == [True, True, True]
    assert run.measurements[0].memory is not None and run.measurements[0].memory.input_bytes == 4 * 3 * 24


EFFECTS = {
    "asserts": ("    tf.debugging.assert_less(x, 2.0)\n    return x**3", ""),
    "prints": ("    tf.print('one')\n    return x**3", ""),
    "of a helper": ("    return by_helper(x)", "def by_helper(x):\n    tf.print('one')\n    return x**3\n\n\n"),
    "neither": ("    return x**3", ""),
}


@pytest.mark.parametrize("effect", EFFECTS)
def test_what_a_strategy_leaves_out_of_an_element_function_in_a_file_is_wrong(
    home: Path, host: HostLauncher, effect: str
) -> None:
    body, helper = EFFECTS[effect]
    text = CUBE.replace("    return x**3", body, 1).replace("def element", helper + "def element", 1)
    if helper:
        text = text.replace("rewrites={},", "rewrites={}, helpers=(by_helper,),")
    (home / "workloads" / "cube.py").write_text(text)
    asked = parse({"workload": "cube", "strategies": ["map_fn.graph", "vectorized_map.graph"]})
    run = untimed(asked, host, Settings(timeout_floor_s=60.0))
    assert run.measurement("map_fn.graph").outcome != "wrong", run.measurement("map_fn.graph").error
    error = run.measurement("vectorized_map.graph").error
    said = error.message if error else ""
    wrong = {"asserts": "leaves out assertions", "neither": ""}.get(effect, "it prints 1 line instead of 4")
    assert wrong in said and bool(said) == bool(wrong), said


def test_a_file_that_does_not_end_is_ended(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "LOAD_LIMIT_S", 1.0)
    path = home / "mappers" / "hangs.py"
    path.write_text("while True:\n    pass\n")
    assert strategies.broken() == {str(path): f"{path} cannot be loaded: it took longer than 1 s"}
    lines = [process.info["cmdline"] for process in psutil.process_iter(["cmdline"])]
    assert not [line for line in lines if str(path) in (line or ())]


# --- what is told is what the file says ------------------------------------------------------------------------------


def never(message: str) -> None:
    raise AssertionError(message)


@pytest.mark.parametrize("slug", ["per_example_gradients", "dp_sgd"])
def test_a_workload_is_the_same_from_afar(slug: str) -> None:
    """Nests, rewrites, helpers, variables, and variants with functions of their own."""
    near = workloads.get(slug)
    far = OwnFile("workloads", str(ROOT / "workloads" / f"{slug}.py"), Workload, never).read()
    choices = [{}, *({name: value} for name, by_value in near.variants.items() for value in by_value)]
    for options in choices:
        here, there = (Case(each, near.default_size(), near.dtypes[0], options) for each in (near, far))
        assert script.build_reference(there) == script.build_reference(here)
        for strategy in (each for each in strategies.all_strategies(here.workload) if each.mode == "graph"):
            assert script.build(there, strategy) == script.build(here, strategy)
            assert planning.plan(there, strategy) == planning.plan(here, strategy)
        assert there.output == here.output


def test_a_mapper_is_the_same_from_afar() -> None:
    near = strategies.mapper("chunked")
    far = OwnFile("strategies", str(ROOT / "strategies" / "chunked.py"), Mapper, never).read()
    workload = workloads.get("outer_reduce")
    for mode in near.modes:
        plan = planning.plan(Case(workload, workload.default_size(), "float32"), f"chunked.{mode}")
        assert far.estimate(plan) == near.estimate(plan)
        assert far.choose is not None and near.choose is not None and far.choose(plan) == near.choose(plan)
        assert far.reason is not None and near.reason is not None
        assert far.reason(plan, {"chunk": 3}) == near.reason(plan, {"chunk": 3})


def test_tuples_lists_and_dicts_of_leaves_can_be_told_apart() -> None:
    leaf = Leaf((3,), "float32")
    nest = {"pair": (leaf, [leaf, leaf]), "names": {"shape": leaf, "dtype": leaf}, "one": (leaf,)}
    assert own.leaves_from_wire(json.loads(json.dumps(own.leaves_to_wire(nest), default=vars))) == nest


# --- functions that fail after all -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("raise ValueError('three')", "ValueError: three"),
        ("import sys; sys.exit('three')", "SystemExit: three"),
        ("import os; os._exit(4)", "ended its process with status 4"),
        ("return 3", "Expected `object`, got `int`"),
        ("while True: pass", "took longer than 0.5 s"),
    ],
)
def test_a_function_that_fails_breaks_its_file_until_that_changes(
    home: Path, monkeypatch: pytest.MonkeyPatch, body: str, says: str
) -> None:
    path = home / "workloads" / "cube.py"
    path.write_text(CUBE.replace("def cost():", f"def cost(batch):\n    if batch == 3:\n        {body}"))
    cube = workloads.get("cube")
    assert forecast.estimate(Case(cube, {"batch": 5}, "float32"), "loop.eager").events
    if "longer" in says:
        monkeypatch.setattr(own, "ANSWER_LIMIT_S", 0.5)
    with pytest.raises(DiscoveryError) as caught:
        forecast.estimate(Case(cube, {"batch": 3}, "float32"), "loop.eager")
    assert str(caught.value) == f"{path}: cost(batch=3) fails: {says}"
    assert "cube" not in workloads.names() and workloads.broken() == {str(path): str(caught.value)}
    path.write_text(CUBE)
    assert "cube" in workloads.names() and workloads.broken() == {}


TELLS_ITS_PROCESS = CUBE.replace("def cost():", "def cost(batch):\n    import os").replace(
    "flops=6", "flops=os.getpid()"
)


def test_a_process_that_has_ended_is_started_again(home: Path) -> None:
    (home / "workloads" / "cube.py").write_text(TELLS_ITS_PROCESS)
    cube = workloads.get("cube")
    first = cube.cost(batch=1).flops
    assert cube.cost(batch=2).flops == first, "one process answers as long as it is asked"
    os.kill(first, signal.SIGKILL)
    assert cube.cost(batch=3).flops != first
    assert cube.cost(batch=1).flops == first, "an answer is kept"


def test_the_process_of_a_file_ends_with_the_one_that_asks(home: Path) -> None:
    (home / "workloads" / "cube.py").write_text(TELLS_ITS_PROCESS)
    asks = "import workloads\nprint(workloads.get('cube').cost(batch=1).flops, flush=True)\ninput()"
    process = subprocess.Popen(
        [sys.executable, "-c", asks], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    assert is_alive(pid)
    process.kill()
    process.communicate()
    eventually(lambda: not is_alive(pid), "the file's process has ended")


# --- in the app and on the command line ------------------------------------------------------------------------------


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    fake = FakeRunner()
    monkeypatch.setattr(runner, "shared", lambda: fake)

    def open_page(**params: Any) -> AppTest:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        for name, value in params.items():
            app.query_params[name] = value
        app.run()
        assert not app.exception and not app.error
        return app

    return open_page


def test_a_broken_file_is_said_on_the_page_and_in_the_list(
    home: Path, visit: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "workloads" / "mine.py").write_text("WORKLOAD = squares")
    says = "mine.py cannot be loaded: NameError: name 'squares' is not defined (line 1)"
    app = visit()
    assert says in words(app)
    assert {"loop.eager", "map_fn.graph"} <= {box.label for box in app.checkbox}
    monkeypatch.setattr("measure.runner.Runner", _Runner(synthetic.run()))
    assert command_line.main(["list"]) == 0
    printed = capsys.readouterr()
    assert printed.err == f"warning: {home}/workloads/{says}\n" and "image_sqrt" in printed.out


def test_a_mapper_that_fails_at_a_size_costs_the_page_only_itself(home: Path, visit: Callable[..., AppTest]) -> None:
    fails = EVERY_OTHER.replace("def estimate(plan):", "def estimate(plan):\n    1 / (plan.batch - 77)")
    (home / "mappers" / "mine.py").write_text(fails)
    assert "through_dataset.graph" in {box.label for box in visit().checkbox}
    app = visit(size_batch="77")
    assert "mine.py: estimate(" in words(app) and "ZeroDivisionError" in words(app)
    labels = {box.label for box in app.checkbox}
    assert "loop.eager" in labels and "through_dataset.graph" not in labels


def test_one_file_is_all_that_a_workload_or_a_mapper_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visit: Callable[..., AppTest], capsysbinary: Any
) -> None:
    cube_file, mapper_file = tmp_path / "cube.py", tmp_path / "through_dataset.py"
    cube_file.write_text(CUBE)
    mapper_file.write_text(EVERY_OTHER)
    monkeypatch.setenv("MAPBENCH_WORKLOADS", str(cube_file))
    monkeypatch.setenv("MAPBENCH_MAPPERS", str(mapper_file))

    app = visit(workload="cube")
    assert "Cube" in words(app) and "through_dataset.graph" in {box.label for box in app.checkbox}

    with monkeypatch.context() as patch:
        patch.setattr("measure.runner.Runner", _Runner(synthetic.run()))
        assert command_line.main(["list", "--json"]) == 0
    listed = json.loads(capsysbinary.readouterr().out)
    cube = next(each for each in listed["workloads"] if each["slug"] == "cube")
    cells = {cell["strategy"]: cell for cell in cube["grid"][0]["cells"]}
    assert cells["through_dataset.graph"]["supported"] and not cells["through_dataset.xla"]["supported"]

    monkeypatch.delenv("MAPBENCH_WORKLOADS")
    folders = {"MAPBENCH_HOME": str(tmp_path / "home"), "MAPBENCH_LOCK": str(tmp_path / "lock")}
    line = ["compare", "--workload-file", str(cube_file), "--budget", "1", "--quiet"]
    line += ["--strategies", "loop.eager,chunked.graph,through_dataset", "--json", "-"]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = forked.start(*line, cwd=ROOT, env=environment(**folders), **pipes)
    out, err = command.communicate(timeout=DEADLINE_S)
    assert command.returncode == 0, err
    run = decode(out)
    outcomes = {item.strategy: item.outcome for item in run.measurements if not item.twin_of}
    slugs = ("loop.eager", "chunked.graph", "through_dataset.eager", "through_dataset.graph")
    assert run.request.workload == "cube" and outcomes == dict.fromkeys(slugs, "ok")
