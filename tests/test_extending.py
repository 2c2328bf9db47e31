"""Workloads, a mapper and a claim take one file each: what docs/extending.md shows, put into a copy of the project."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forked
from tests.browser import ROOT
from tests.test_docs import blocks

ROOMS = ("mapbench", "measure", "strategies", "tests", "views", "workloads")
PARTS = (".streamlit", "app.py", "docs", "pyproject.toml", *ROOMS)
WORKLOAD, SEVERAL, MAPPER = "square_plus_one", "slope", "one_at_a_time"
CLAIM = "python_loops_cost_for_every_element"
FILES = (
    f"workloads/{WORKLOAD}.py",
    f"workloads/{SEVERAL}.py",
    f"strategies/{MAPPER}.py",
    "measure/claims/known/loops_of_python.py",
)

# Prints what a person finds who opens the page with the new workload, all mappers unfolded, and nothing behind it.
PAGE = f"""
import json
from streamlit.testing.v1 import AppTest
from measure import runner
from tests.pages import FakeRunner

fake = FakeRunner()
runner.shared = lambda: fake
app = AppTest.from_file("app.py", default_timeout=60)
app.query_params["workload"] = {WORKLOAD!r}
app.query_params["strategies"] = ["{MAPPER}.graph"]
app.run()
faults = [each.value for each in (*app.exception, *app.error, *app.warning)]
app.button(key="run").click().run()
print(json.dumps({{
    "faults": faults,
    "workload": app.selectbox(key="workload").value,
    "chosen": [box.label for box in app.checkbox if box.value],
    "asked": [[request.workload, *request.strategies] for request in fake.submitted],
}}))
"""


# The arguments of pytest; what it has collected is printed, whatever of it is chosen to run.
PYTEST = """
import sys, pytest

class Told:
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items):
        print(*(item.nodeid for item in items), sep="\\n")

sys.exit(pytest.main(sys.argv[1:], plugins=[Told()]))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy") / "project"
    folder.mkdir()
    for name in PARTS:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, folder / name)
    for name, source in zip(FILES, blocks(ROOT / "docs/extending.md", "python"), strict=True):
        assert not (folder / name).exists()
        (folder / name).write_text(source, encoding="utf-8")
    return folder


def python(project: Path, *arguments: str) -> str:
    """Run Python in the copy, and return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(project)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=project, env=environment, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def measure(project: Path, *arguments: str) -> str:
    """What ``python -m measure`` prints in the copy."""
    environment = {**os.environ, "PYTHONPATH": str(project)}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = forked.start(*arguments, cwd=project, env=environment, text=True, **pipes)
    out, err = command.communicate(timeout=300)
    assert command.returncode == 0, err
    return out


def test_they_read_like_the_rest_of_the_project(project: Path) -> None:
    python(project, "-m", "ruff", "check", "--no-cache", *FILES)
    python(project, "-m", "ruff", "format", "--no-cache", "--check", *FILES)


def test_they_are_on_the_page(project: Path) -> None:
    page = json.loads(python(project, "-c", PAGE))
    assert page == {
        "faults": [],
        "workload": WORKLOAD,
        "chosen": [f"{MAPPER}.graph"],
        "asked": [[WORKLOAD, f"{MAPPER}.graph"]],
    }


def test_they_are_in_the_tests_which_they_pass(project: Path) -> None:
    places = (
        "workloads",
        "strategies",
        "measure/model",
        "measure/claims/test_verdicts.py",
        "views/charts/test_charts.py",
    )
    # What has their names, and what holds the tables that nobody has edited.
    theirs = f"{WORKLOAD} or {SEVERAL} or {MAPPER} or {CLAIM} or test_grid or TestColours"
    quickly = ("-q", "-p", "no:cacheprovider", "-m", "not slow", "-k", theirs)
    said = python(project, "-c", PYTEST, *quickly, *(f"tests/{place}" for place in places))
    assert " passed" in said
    collected = said.splitlines()
    for name in (
        f"test_numpy_rewrites_compute_the_reference[{WORKLOAD}-float64]",
        f"test_outcomes_are_those_of_the_table[{WORKLOAD}]",
        f"test_a_script_alone_computes_the_reference[{WORKLOAD}-loop.eager-float32]",
        f"test_a_script_alone_computes_the_reference[{SEVERAL}-loop.eager-float32]",
        f"test_a_script_alone_computes_the_reference[image_sqrt-{MAPPER}.eager-float32]",
        f"test_more_elements_never_take_less[{WORKLOAD}]",
        f"test_a_claim_does_not_hold_where_none_of_it_is_so[{CLAIM}]",
    ):
        assert [line for line in collected if line.endswith(f"::{name}")], name


def test_they_are_on_the_command_line(project: Path) -> None:
    listed = json.loads(measure(project, "list", "--json"))
    (workload,) = [each for each in listed["workloads"] if each["slug"] == WORKLOAD]
    assert MAPPER in [each["slug"] for each in listed["mappers"]] and listed["broken"] == {}
    (grid,) = workload["grid"]
    assert {f"{MAPPER}.eager", f"{MAPPER}.graph"} <= {each["strategy"] for each in grid["cells"] if each["supported"]}
    compare = ("compare", WORKLOAD, "--size", "batch=8", "--strategies", MAPPER, "--budget", "1")
    printed = measure(project, *compare)
    assert f"{MAPPER}.eager" in printed and f"{MAPPER}.graph" in printed and "failed" not in printed
    printed = measure(project, "claims", CLAIM)
    assert f"HOLDS  {CLAIM}" in printed and "Of 1 claim 1 holds." in printed
