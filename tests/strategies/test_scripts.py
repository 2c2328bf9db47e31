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


def small_case(slug: str, dtype: str = "float32") -> Case:
    workload = workloads.get(slug)
    return Case(workload, small(workload), dtype)


# --- how they read -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("live")
def test_scripts_hold_nothing_unused_and_nothing_without_a_name(tmp_path: Path) -> None:
    for workload in workloads.all():
        case = Case(workload, small(workload), "bfloat16", seed=2**32 - 1)
        for place, strategy in enumerate(each for each in strategies.all_strategies(workload) if each.mode == "graph"):
            text = script.build(case, strategy, threads=(None, 2)[place % 2])
            (tmp_path / f"{workload.slug}_{strategy.mapper}_{strategy.mode}.py").write_text(text)
        (tmp_path / f"{workload.slug}_reference.py").write_text(script.build_reference(case))
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select=E4,E7,E9,F,W,I,B"]
    result = subprocess.run([*ruff, tmp_path], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


# --- what does not fit together ------------------------------------------------------------------------------------


def own_case(folder: Path, *changes: tuple[str, str]) -> Case:
    text = CUBE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "cube.py").write_text(text)
    return Case(workloads.load_file(folder / "cube.py"), {"batch": 2}, "float32")


def test_two_functions_of_one_name_are_refused(tmp_path: Path) -> None:
    case = own_case(tmp_path, ("def element(", "def map_with_loop("), ("element=element", "element=map_with_loop"))
    with pytest.raises(script.ScriptError, match="two functions of one script are named 'map_with_loop'"):
        script.build(case, "loop.eager")


def test_functions_of_the_file_that_are_called_stand_in_the_script(tmp_path: Path) -> None:
    helper = "def cubed(x):\n    return x * squared(x)\n\n\ndef squared(x):\n    return x * x\n\n\ndef element("
    text = script.build(own_case(tmp_path, ("def element(", helper), ("return x**3", "return cubed(x)")), "loop.eager")
    order = [text.index(f"def {name}(") for name in ("inputs", "squared", "cubed", "element", "map_with_loop")]
    assert order == sorted(order) and "def reference(" not in text
