"""Workloads, a mapper and a claim take one file each: what docs/extending.md shows works as it stands."""

from pathlib import Path

import pytest

import strategies
import workloads
from measure.claims import known
from measure.claims.verdicts import judge
from measure.pool.launcher import Launcher
from measure.run import listing
from measure.run.request import parse
from tests.browser import ROOT
from tests.claims import evidence
from tests.grid import untimed
from tests.test_docs import blocks

WORKLOAD, SEVERAL, MAPPER, CLAIM = blocks(ROOT / "docs/extending.md", "python")


def test_workloads_and_a_mapper_are_listed_and_measured(
    host: Launcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files are in folders that the settings name."""
    for variable, files in (
        (workloads.VARIABLE, {"square_plus_one.py": WORKLOAD, "slope.py": SEVERAL}),
        ("MAPBENCH_MAPPERS", {"one_at_a_time.py": MAPPER}),
    ):
        folder = tmp_path / variable
        folder.mkdir()
        for name, source in files.items():
            (folder / name).write_text(source, encoding="utf-8")
        monkeypatch.setenv(variable, str(folder))
    assert listing.broken() == {}
    assert "one_at_a_time" in [mapper.slug for mapper in strategies.mappers()]
    for workload, strategy in (
        ("square_plus_one", "one_at_a_time,batched.graph"),
        ("slope", "map_fn.graph,map_fn.graph?element=by_hand"),
    ):
        asked = parse({"workload": workload, "size": {"batch": 8}, "strategies": strategy})
        run = untimed(asked, host)
        right = [item.strategy for item in run.measurements if item.correctness and item.correctness.ok]
        assert right == asked.strategies and all(item.memory for item in run.measurements)


def test_a_claim_is_whole_and_figures_confirm_and_refute_it() -> None:
    space: dict[str, object] = {}
    exec(compile(CLAIM, "<claim>", "exec"), space)
    claims = space["CLAIMS"]
    assert isinstance(claims, tuple)
    (claim,) = claims
    assert claim.id not in [one.id for one in known.all_claims()]
    for yes, word in ((True, "holds"), (False, "does not hold")):
        assert judge(claim, {test.need.key: evidence(test, yes) for test in claim.tests}, {}).word == word
