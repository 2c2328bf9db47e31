"""Several element functions of one workload: an option of its strategies, so that they compete in one run."""

from pathlib import Path

import pytest

import workloads
from measure.run import listing
from measure.run.request import RequestError, parse
from strategies import script
from tests.engine import ROOT
from tests.test_docs import blocks
from workloads.case import Case
from workloads.discovery import DiscoveryError

SLOPE = blocks(ROOT / "docs/extending.md", "python")[1]
BY_HAND = "map_fn.graph?element=by_hand"


@pytest.fixture
def slope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the documentation, in a home of its own."""
    (tmp_path / "workloads").mkdir()
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    path = tmp_path / "workloads" / "slope.py"
    path.write_text(SLOPE)
    return path


def test_words_stand_for_all_of_those_that_a_workload_has_and_the_default_for_one(slope: Path) -> None:
    def chosen(text: str) -> tuple[str, ...]:
        return tuple(parse({"workload": "slope", "strategies": text}).strategies)

    modes = ("eager", "graph", "xla")
    assert chosen("map_fn") == (
        *(f"map_fn.{mode}" for mode in modes), *(f"map_fn.{mode}?element=by_hand" for mode in modes)
    )  # fmt: skip
    assert {BY_HAND, "map_fn.graph"} <= set(chosen("graph")) & set(chosen("all"))
    assert not [slug for slug in chosen("default") if "element" in slug]
    assert "    ?element=by_hand  written in another way" in listing.lines(["CPU:0"])
    with pytest.raises(RequestError, match=r"'by_foot', which slope does not have: it has by_hand$"):
        chosen("map_fn.graph?element=by_foot")
    with pytest.raises(RequestError, match=r"'by_hand', which square does not have$"):
        parse({"workload": "square", "strategies": BY_HAND})


def test_its_script_holds_the_function_that_it_maps(tmp_path: Path) -> None:
    path = tmp_path / "slope.py"
    path.write_text(SLOPE)
    workload = workloads.load_file(path)
    case = Case(workload, workload.default_size(), "float32")
    ours, theirs = (script.build(case, slug) for slug in (BY_HAND, "map_fn.graph"))
    assert "def by_hand(x):" in ours and "def by_gradient_tape" not in ours and "(by_hand, elems" in ours
    assert "def by_hand" not in theirs and "(by_gradient_tape, elems" in theirs
    path.write_text(SLOPE.replace("def by_hand(x):", "def by_hand(x, *, angle):"))
    with pytest.raises(DiscoveryError, match="slope: by_hand asks for 'angle': it can have batch, width"):
        workloads.load_file(path)
