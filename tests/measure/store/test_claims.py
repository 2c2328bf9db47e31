"""Runs of claims are kept, listed and left as they are: by their evidence, piece by piece."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from measure.claims import table, verdicts
from measure.output import export
from measure.run.encoding import encode
from measure.run.run import Run
from measure.store import imports, store
from measure.store.entries import Query
from tests.keeping import put
from tests.measure.store.test_imports import small_claims

ID = "0123456789abcdef01234567"


@pytest.fixture
def kept(tmp_path: Path) -> store.Store:
    return store.Store(tmp_path)


def growing(pieces: int) -> Run:
    """The run of claims when so many pieces of evidence have arrived."""
    whole = small_claims()
    return replace(whole, evidence=whole.evidence[:pieces], finished=None, status="interrupted", stop_reason="")


def test_a_run_whose_process_is_gone_keeps_its_evidence_and_is_judged_by_it(kept: store.Store, tmp_path: Path):
    put(kept, growing(1), live=True)
    assert kept.entries()[0].verdict == "", "nothing is said of it before its end"
    (lock,) = (tmp_path / "holders").iterdir()
    kept.close()  # lets go of the lock, as the end of a process does
    assert not lock.exists()
    run = store.Store(tmp_path).load(ID)
    assert run is not None and run.evidence == growing(1).evidence
    assert (run.status, run.finished is None) == ("interrupted", False)
    (entry,) = kept.entries(Query(growing(1).claims[0]))
    assert (entry.workload, entry.size, kept.entries(Query("other_claim"))) == ("claims", "2 claims", [])
    assert run.verdict == verdicts.summary(run) == "Of 2 claims 1 holds and 1 is no longer tried."


def test_nothing_of_a_file_from_elsewhere_is_executed(kept: store.Store, tmp_path: Path):
    """Its source is text, and its verdicts are computed from its figures."""
    hostile = f"open({str(tmp_path / 'executed')!r}, 'w').close()"
    run = small_claims()
    evidence = [*run.evidence[:2], replace(run.evidence[2], script=replace(run.evidence[2].script, source=hostile))]
    run = imports.read(encode(replace(run, evidence=evidence)))
    assert kept.add(run) and kept.load(ID).evidence[2].script.source == hostile
    assert table.render(run) and export.markdown(run)
    assert list(export.table_csv(run)) and list(export.samples_csv(run))
    assert not (tmp_path / "executed").exists()
