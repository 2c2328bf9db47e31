"""How the scripts of strategies read, and what does not fit into one."""

import subprocess
import sys
from pathlib import Path

import pytest

import strategies
import workloads
from strategies import script
from tests.workloads.test_workloads import CUBE, small
from workloads.case import Case
from workloads.spec import Workload


def small_case(slug: str, dtype: str = "float32") -> Case:
    workload = workloads.get(slug)
    return Case(workload, small(workload), dtype)


# --- how they read -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("live")
def test_scripts_are_formatted_and_hold_nothing_unused(tmp_path: Path) -> None:
    """At small and at the largest sizes, where lines have to be split, without and with lines that set threads."""
    for workload in workloads.all():
        largest = {parameter.name: parameter.most for parameter in workload.sizes}
        for place, strategy in enumerate(each for each in strategies.all_strategies(workload) if each.mode == "graph"):
            size, threads = ((small(workload), None), (largest, 2))[place % 2]
            case = Case(workload, size, "bfloat16", seed=2**32 - 1)
            text = script.build(case, strategy, threads=threads)
            (tmp_path / f"{workload.slug}_{strategy.mapper}_{strategy.mode}.py").write_text(text)
        (tmp_path / f"{workload.slug}_reference.py").write_text(script.build_reference(case))
    ruff = [sys.executable, "-m", "ruff"]
    for command in (
        ["format", "--isolated", "--no-cache", "--line-length=120", "--diff"],
        ["check", "--isolated", "--no-cache", "--line-length=120", "--select=E,F,W,I,B"],
    ):
        result = subprocess.run([*ruff, *command, tmp_path], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout


# --- what does not fit together ------------------------------------------------------------------------------------


def own_workload(folder: Path, *changes: tuple[str, str]) -> Workload:
    text = CUBE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "cube.py").write_text(text)
    return workloads.load_file(folder / "cube.py")


@pytest.mark.parametrize(
    ("changes", "strategy", "sentence"),
    [
        (
            [("return x**3", "return LIMIT * math.pi")],
            "loop.eager",
            "the script of cube would use LIMIT, math, which it",
        ),
        (
            [("def element(", "def map_with_loop("), ("element=element", "element=map_with_loop")],
            "loop.eager",
            "two functions of one script are named 'map_with_loop'",
        ),
        ([], "batched.eager", "batched needs a rewrite 'batched', which cube does not have"),
        (
            [("return x.astype(np.float64) ** 3", "return tf.cast(x, tf.float64) ** 3")],
            "",
            "the reference of cube would use tf, which it does not have: its functions may use np, their arguments",
        ),
    ],
)
def test_what_does_not_fit_into_a_script_is_named(
    tmp_path: Path, changes: list[tuple[str, str]], strategy: str, sentence: str
) -> None:
    case = Case(own_workload(tmp_path, *changes), {"batch": 2}, "float32")
    with pytest.raises(script.ScriptError, match=sentence):
        script.build(case, strategy) if strategy else script.build_reference(case)
