"""Rewrites with a name of a workload's own: strategies wherever strategies are, with nothing else to write."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import strategies
import workloads
from measure import runner
from measure.__main__ import main
from measure.engine.bench import Settings
from measure.engine.host_launcher import HostLauncher
from measure.model import listing
from measure.model.request import parse
from measure.model.run import Run
from measure.model.run_file import decode, encode
from measure.output import sweep_table, table
from measure.sweep.request import parse_sweep
from strategies import rewrites
from strategies.spec import Strategy
from tests.engine import DEADLINE_S, ROOT, running
from tests.grid import untimed
from tests.pages import FakeRunner, StoredRunner, words
from tests.subjects import Subjects
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
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "workloads").mkdir()
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    monkeypatch.setenv("MAPBENCH_WORKLOADS", "")  # which the command line sets for good
    return tmp_path


@pytest.fixture
def tricks(home: Path) -> Path:
    path = home / "workloads" / "cube.py"
    path.write_text(TRICKS)
    return path


def chosen(home: Path, text: str) -> tuple[str, ...]:
    return parse({"workload": "cube", "strategies": text}).strategies


def test_every_rewrite_of_the_projects_own_workloads_has_a_mapper() -> None:
    known = {mapper.slug: mapper for mapper in strategies.mappers()}
    assert not [said for workload in workloads.all() for said in rewrites.refusals(workload, known)]


def test_it_is_a_mapper_of_that_name_for_the_workloads_that_have_it(tricks: Path) -> None:
    cube, square = workloads.get("cube"), workloads.get("square")
    assert [each.slug for each in strategies.all_strategies(cube)][-6:-3] == MODES
    assert strategies.parse("my_trick.xla") == Strategy("my_trick", "xla")
    assert strategies.missing(strategies.mapper("my_trick"), square) == "a rewrite 'my_trick'"
    assert chosen(tricks, "my_trick") == tuple(MODES)
    assert {"my_trick.graph", "other_trick.graph"} <= set(chosen(tricks, "default")) & set(chosen(tricks, "graph"))
    said = "\n".join(listing.lines(["CPU:0"]))
    assert (
        f"my_trick  a rewrite for the whole batch that the workload cube brings along\n    {'  '.join(MODES)}" in said
    )
    tricks.write_text(TRICKS.replace("my_trick", "your_trick"))
    assert "my_trick" not in {mapper.slug for mapper in strategies.mappers()}
    assert chosen(tricks, "your_trick.graph") == ("your_trick.graph",)


def test_one_of_a_variant_alone_is_a_mapper_too(home: Path) -> None:
    option = 'options=(Option("by", "name", "how", ("name", "trick")),), variants={"by": {"trick": '
    variant = TRICKS.replace("import Cost, Leaf,", "import Cost, Leaf, Option,").replace(
        ', "my_trick": by_squaring, "other_trick": forgetful}',
        f'}}, {option}{{"rewrites": {{"my_trick": by_squaring}}}}}}}}',
    )
    (home / "workloads" / "cube.py").write_text(variant)
    asked = {"workload": "cube", "strategies": "my_trick.graph"}
    assert parse({**asked, "workload_options": {"by": "trick"}}).strategies == ("my_trick.graph",)
    with pytest.raises(ValueError, match="my_trick needs a rewrite 'my_trick', which cube does not have"):
        parse(asked)


def test_the_page_offers_it_and_an_address_names_it(tricks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeRunner()
    monkeypatch.setattr(runner, "shared", lambda: fake)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.query_params["workload"] = "cube"
    app.query_params["strategies"] = ["my_trick.graph", "loop.eager"]
    app.run()
    assert not [*app.exception, *app.error, *app.warning]
    assert {"my_trick.graph", "loop.eager"} == {box.label for box in app.checkbox if box.value}
    assert {*MODES, "other_trick.xla"} <= {box.label for box in app.checkbox}
    app.button(key="run").click().run()
    assert fake.submitted[0].strategies == ("my_trick.graph", "loop.eager")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("My trick", "cube: rewrite 'My trick' is not valid: small letters, digits and _ are, beginning with a letter"),
        ("trick-2", "cube: rewrite 'trick-2' is not valid: small letters, digits and _ are, beginning with a letter"),
    ],
)
def test_a_name_that_cannot_stand_in_a_link_is_refused(tricks: Path, name: str, says: str) -> None:
    tricks.write_text(TRICKS.replace("my_trick", name))
    with pytest.raises(DiscoveryError, match=re.escape(f"{tricks}: {says}")):
        workloads.in_file(tricks)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("loop", "the rewrite 'loop' is not offered: a mapper has this name already, choose another"),
        ("numpy_batched", "the rewrite 'numpy_batched' is not offered: a mapper has this name already, choose another"),
        ("graph", "the rewrite 'graph' is not offered: all, default, none, eager, graph, xla mean several strategies"),
    ],
)
def test_a_name_that_means_something_else_costs_the_rewrite_and_is_said(
    tricks: Path, capsys: pytest.CaptureFixture[str], name: str, says: str
) -> None:
    tricks.write_text(TRICKS.replace("my_trick", name))
    assert listing.broken()[str(tricks)].startswith(f"{tricks}: {says}")
    assert chosen(tricks, "other_trick.graph,loop.graph") == ("other_trick.graph", "loop.graph")
    assert strategies.mapper("loop").apply is not None and strategies.mapper("numpy_batched").rewrite == "numpy"
    assert main(["compare", "--workload-file", str(tricks)]) == 2
    assert says in capsys.readouterr().err


def _kept(launcher: Any, home: Path, submit: Callable[[runner.Runner], str]) -> Run:
    with running(launcher, home) as measuring:
        run_id = submit(measuring)
        assert measuring.wait(run_id, DEADLINE_S)
        snapshot = measuring.snapshot(run_id)
    assert snapshot is not None and snapshot.run.status == "complete"
    return snapshot.run


def test_its_runs_open_where_nobody_has_heard_of_it(tricks: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = {"workload": "cube", "strategies": "loop.eager,my_trick.graph,my_trick.xla"}
    subjects = Subjects(latencies_s={"my_trick.graph": 0.001})
    compared = _kept(subjects, home, lambda own: own.submit(parse(raw)))
    axes = [{"kind": "size", "name": "batch", "values": [4, 8, 16]}]
    swept = _kept(subjects, home, lambda own: own.submit_sweep(parse_sweep({**raw, "axes": axes})))
    assert compared.ranking[0] == ["my_trick.graph"]

    tricks.unlink()
    monkeypatch.setenv("MAPBENCH_HOME", str(home / "another"))
    fake = StoredRunner(home / "another")
    monkeypatch.setattr(runner, "shared", lambda: fake)
    for run in (compared, swept):
        fake.store.add(decode(encode(run)))
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app.query_params["run"] = run.id
        app.run()
        assert not app.exception and not app.error
        assert run.verdict in words(app) and "my_trick.graph" in words(app)
    assert "my_trick.graph" in table.render(compared) and "my_trick.xla" in sweep_table.render(swept)


def test_it_is_measured_and_checked_like_any_other(tricks: Path, host: HostLauncher) -> None:
    asked = parse({"workload": "cube", "strategies": "my_trick,other_trick.graph"})
    run = untimed(asked, host, Settings(timeout_floor_s=60.0))
    outcomes = {item.strategy: item.outcome for item in run.measurements if not item.twin_of}
    # Nothing is timed here, so that those that are right stay as they are.
    assert outcomes == {**dict.fromkeys(MODES, outcomes["my_trick.eager"]), "other_trick.graph": "wrong"}
    assert [item.correctness and item.correctness.ok for item in run.measurements] == [True, True, True, False]
