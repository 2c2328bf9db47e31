"""Sweeps are kept, leave and come in as they are."""

from pathlib import Path

import pytest

from measure.model.run import Run
from measure.model.run_file import encode
from measure.output import export, sweep_table
from measure.store import imports
from measure.store.store import Store
from tests import synthetic


@pytest.mark.parametrize("run", [synthetic.sweep(), synthetic.winners()], ids=["line", "map"])
def test_a_sweep_leaves_and_comes_in_as_it_is(run: Run, tmp_path: Path):
    data = encode(run)
    kept = Store(tmp_path)
    assert kept.add(imports.read(data)) and encode(kept.load(run.id)) == data
    entry = kept.entries()[0]
    assert "batch 1 to " in entry.size and entry.verdict == run.verdict
    header, *lines = "".join(export.table_csv(run)).splitlines()
    names = [axis.name for axis in run.axes]
    assert header.split(",")[: len(names)] == names and "strategy" in header
    assert len(lines) == sum(max(1, len(point.measurements)) for point in run.points)
    rounds = [r.rounds for point in run.points for item in point.measurements for r in item.replicas]
    assert len(list(export.samples_csv(run))) == 1 + sum(map(len, rounds))
    for shown in (sweep_table.render(run), export.markdown(run)):
        assert "loop.eager" in shown and run.verdict.split(" ")[0] in shown
