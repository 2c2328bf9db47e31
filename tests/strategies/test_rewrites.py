"""Rewrites and element functions that a workload's file brings along: strategies, with nothing else to write."""

from pathlib import Path

import pytest

import strategies
import workloads
from measure.run import listing
from measure.run.request import RequestError, parse
from strategies import script
from strategies.spec import Strategy
from tests.engine import ROOT
from tests.test_docs import blocks
from tests.workloads.test_workloads import CUBE
from workloads.case import Case
from workloads.discovery import DiscoveryError

# The cube with two tricks, one of which is wrong.
TRICKS = CUBE.replace(
    "def reference(x):",
    "def by_squaring(x):\n    return x * tf.square(x)\n\n\n"
    "def forgetful(x):\n    return tf.square(x)\n\n\ndef reference(x):",
).replace("rewrites={}", 'rewrites={"batched": element, "my_trick": by_squaring, "other_trick": forgetful}')
MODES = ["my_trick.eager", "my_trick.graph", "my_trick.xla"]
SLOPE = blocks(ROOT / "docs/extending.md", "python")[1]
BY_HAND = "map_fn.graph?element=by_hand"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a person's own workloads, with the cube, and the slope of the documentation."""
    (folder := tmp_path / "workloads").mkdir()
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    (folder / "cube.py").write_text(TRICKS)
    (folder / "slope.py").write_text(SLOPE)
    return folder


def chosen(text: str, workload: str = "cube") -> tuple[str, ...]:
    return tuple(parse({"workload": workload, "strategies": text}).strategies)


def test_a_rewrite_is_a_mapper_of_its_name_for_the_workloads_that_have_it(own: Path) -> None:
    cube, square = workloads.get("cube"), workloads.get("square")
    assert [each.slug for each in strategies.all_strategies(cube)][-6:-3] == MODES
    assert strategies.parse("my_trick.xla") == Strategy("my_trick", "xla")
    refusal = strategies.missing(strategies.mapper("my_trick"), square)
    assert refusal == "my_trick needs a rewrite 'my_trick', which square does not have"
    assert chosen("my_trick") == tuple(MODES)
    assert {"my_trick.graph", "other_trick.graph"} <= set(chosen("default")) & set(chosen("graph"))
    assert f"    {'  '.join(MODES)}" in listing.lines(["CPU:0"])
    (own / "cube.py").write_text(TRICKS.replace("my_trick", "your_trick"))
    assert "my_trick" not in {mapper.slug for mapper in strategies.mappers()}
    assert chosen("your_trick.graph") == ("your_trick.graph",)


def test_a_name_that_cannot_stand_in_a_link_is_refused_and_that_of_a_mapper_is_left_to_it(own: Path) -> None:
    (own / "cube.py").write_text(TRICKS.replace("my_trick", "My trick"))
    with pytest.raises(DiscoveryError, match="cube: rewrite 'My trick' is not valid: small letters, digits and _ are"):
        workloads.in_file(own / "cube.py")
    (own / "cube.py").write_text(TRICKS.replace("my_trick", "loop"))
    assert chosen("other_trick.graph,loop.graph") == ("other_trick.graph", "loop.graph")
    assert strategies.mapper("loop").apply is not None


@pytest.mark.usefixtures("own")
def test_words_stand_for_all_element_functions_that_a_workload_has_and_the_default_for_one() -> None:
    modes = ("eager", "graph", "xla")
    assert chosen("map_fn", "slope") == (
        *(f"map_fn.{mode}" for mode in modes), *(f"map_fn.{mode}?element=by_hand" for mode in modes)
    )  # fmt: skip
    assert {BY_HAND, "map_fn.graph"} <= set(chosen("graph", "slope")) & set(chosen("all", "slope"))
    assert not [slug for slug in chosen("default", "slope") if "element" in slug]
    assert "    ?element=by_hand  written in another way" in listing.lines(["CPU:0"])
    with pytest.raises(RequestError, match=r"'by_foot', which slope does not have: it has by_hand$"):
        chosen("map_fn.graph?element=by_foot", "slope")
    with pytest.raises(RequestError, match=r"'by_hand', which square does not have$"):
        chosen(BY_HAND, "square")


def test_a_script_holds_the_element_function_that_it_maps(own: Path) -> None:
    workload = workloads.get("slope")
    case = Case(workload, workload.default_size(), "float32")
    ours, theirs = (script.build(case, slug) for slug in (BY_HAND, "map_fn.graph"))
    assert "def by_hand(x):" in ours and "def by_gradient_tape" not in ours and "(by_hand, elems" in ours
    assert "def by_hand" not in theirs and "(by_gradient_tape, elems" in theirs
    (own / "slope.py").write_text(SLOPE.replace("def by_hand(x):", "def by_hand(x, *, angle):"))
    with pytest.raises(DiscoveryError, match="slope: by_hand asks for 'angle': it can have batch, width"):
        workloads.in_file(own / "slope.py")
