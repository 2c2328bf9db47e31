"""Rewrites with a name of a workload's own: strategies wherever strategies are, with nothing else to write."""

from pathlib import Path

import pytest

import strategies
import workloads
from measure.engine.bench import Settings
from measure.model import listing
from measure.model.request import parse
from measure.model.run_file import decode, encode
from measure.output import table
from measure.pool import process
from measure.pool.host_launcher import HostLauncher
from strategies import rewrites
from strategies.spec import Strategy
from tests.deadlines import RUN_S
from tests.engine import measure, running
from tests.grid import untimed
from tests.subjects import Subjects
from tests.warm import WARM
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
    for name, says in (
        ("loop", "the rewrite 'loop' is not offered: a mapper has this name already"),
        ("graph", "the rewrite 'graph' is not offered: all, default, none, eager, graph, xla mean several strategies"),
    ):
        tricks.write_text(TRICKS.replace("my_trick", name))
        assert listing.broken()[str(tricks)].startswith(f"{tricks}: {says}")
        assert chosen("other_trick.graph,loop.graph") == ("other_trick.graph", "loop.graph")
        assert strategies.mapper("loop").apply is not None


def test_its_runs_are_shown_where_nobody_has_heard_of_it(tricks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tricks.parent.parent
    with running(Subjects(latencies_s={"my_trick.graph": 0.001}), home) as measuring:
        run = measure(measuring, parse({"workload": "cube", "strategies": "loop.eager,my_trick.graph,my_trick.xla"}))
    assert run.status == "complete" and run.ranking[0] == ["my_trick.graph"]
    tricks.unlink()
    monkeypatch.setenv("MAPBENCH_HOME", str(home / "another"))
    assert "my_trick.graph" in table.render(decode(encode(run)))


def test_it_is_measured_and_checked_like_any_other(
    tricks: Path, host: HostLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "subprocess", WARM)
    asked = parse({"workload": "cube", "strategies": "my_trick.graph,other_trick.graph"})
    run = untimed(asked, host, Settings(timeout_floor_s=RUN_S))
    assert [item.correctness and item.correctness.ok for item in run.measurements] == [True, False]
