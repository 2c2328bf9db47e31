"""Rewrites with a name of a workload's own: strategies wherever strategies are, with nothing else to write."""

from pathlib import Path

import pytest

import strategies
import workloads
from measure.run import listing
from measure.run.request import parse
from strategies import rewrites
from strategies.spec import Strategy
from tests.workloads.test_workloads import CUBE
from workloads.discovery import DiscoveryError

# The cube with two tricks, one of which is wrong.
TRICKS = CUBE.replace(
    "def reference(x):",
    "def by_squaring(x):\n    return x * tf.square(x)\n\n\n"
    "def forgetful(x):\n    return tf.square(x)\n\n\ndef reference(x):",
).replace("rewrites={}", 'rewrites={"batched": element, "my_trick": by_squaring, "other_trick": forgetful}')
MODES = ["my_trick.eager", "my_trick.graph", "my_trick.xla"]


@pytest.fixture
def tricks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "workloads").mkdir()
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    path = tmp_path / "workloads" / "cube.py"
    path.write_text(TRICKS)
    return path


def chosen(text: str) -> tuple[str, ...]:
    return tuple(parse({"workload": "cube", "strategies": text}).strategies)


def test_every_rewrite_of_the_projects_own_workloads_has_a_mapper() -> None:
    known = {mapper.slug: mapper for mapper in strategies.mappers()}
    assert not [said for workload in workloads.all() for said in rewrites.refusals(workload, known)]


def test_it_is_a_mapper_of_that_name_for_the_workloads_that_have_it(tricks: Path) -> None:
    cube, square = workloads.get("cube"), workloads.get("square")
    assert [each.slug for each in strategies.all_strategies(cube)][-6:-3] == MODES
    assert strategies.parse("my_trick.xla") == Strategy("my_trick", "xla")
    assert strategies.missing(strategies.mapper("my_trick"), square) == "a rewrite 'my_trick'"
    assert chosen("my_trick") == tuple(MODES)
    assert {"my_trick.graph", "other_trick.graph"} <= set(chosen("default")) & set(chosen("graph"))
    assert f"    {'  '.join(MODES)}" in listing.lines(["CPU:0"])
    tricks.write_text(TRICKS.replace("my_trick", "your_trick"))
    assert "my_trick" not in {mapper.slug for mapper in strategies.mappers()}
    assert chosen("your_trick.graph") == ("your_trick.graph",)


def test_a_name_that_cannot_stand_in_a_link_or_means_something_else_is_refused_and_costs_the_rewrite_alone(
    tricks: Path,
) -> None:
    tricks.write_text(TRICKS.replace("my_trick", "My trick"))
    with pytest.raises(DiscoveryError, match="cube: rewrite 'My trick' is not valid: small letters, digits and _ are"):
        workloads.in_file(tricks)
    for name in ("loop", "graph"):
        tricks.write_text(TRICKS.replace("my_trick", name))
        sentence = f"{tricks}: the rewrite {name!r} is not offered: choose another name, a mapper or a word"
        assert listing.broken()[str(tricks)].startswith(sentence)
        assert chosen("other_trick.graph,loop.graph") == ("other_trick.graph", "loop.graph")
        assert strategies.mapper("loop").apply is not None
