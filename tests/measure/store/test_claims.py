"""Runs of claims are kept, listed and left as they are: by their evidence, piece by piece."""

import csv
import io
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from msgspec.structs import replace

from measure.claims import known, table, tries
from measure.model.run import Evidence, Run
from measure.model.run_file import decode, encode
from measure.output import export
from measure.store import documents, imports, store
from measure.store.entries import Query
from tests.measure.store.test_imports import small_claims
from tests.synthetic import HOSTILE

ID = "0123456789abcdef01234567"


@pytest.fixture
def kept(tmp_path: Path) -> store.Store:
    return store.Store(tmp_path)


def growing(pieces: int) -> Run:
    """The run of claims when so many pieces of evidence have arrived."""
    whole = small_claims()
    return replace(whole, evidence=whole.evidence[:pieces], finished=None, status="interrupted", stop_reason="")


def test_it_is_stored_and_comes_in_as_it_leaves(kept: store.Store, tmp_path: Path):
    data = encode(small_claims())
    assert kept.add(imports.read(data)) and encode(kept.load(ID)) == data
    assert encode(store.Store(tmp_path).load(ID)) == data == encode(decode(data))
    assert not kept.add(imports.read(data)), "it is here already"


def test_evidence_that_arrives_costs_what_it_weighs(kept: store.Store, monkeypatch: pytest.MonkeyPatch):
    packed: list[Any] = []
    real = documents.packed
    monkeypatch.setattr(documents, "packed", lambda part: packed.append(part) or real(part))
    for pieces in range(4):
        kept.save(growing(pieces), live=True)
        head, *others = packed
        assert isinstance(head, Run) and head.evidence == [] and head.claims == small_claims().claims
        assert others == ([small_claims().evidence[pieces - 1]] if pieces else [])
        packed.clear()
    assert kept.load(ID) == growing(3)


def test_a_run_whose_process_is_gone_keeps_its_evidence_and_is_judged_by_it(kept: store.Store, tmp_path: Path):
    kept.save(growing(1), live=True)
    assert kept.entries()[0].verdict == "", "nothing is said of it before its end"
    (lock,) = (tmp_path / "holders").iterdir()
    kept.close()  # lets go of the lock, as the end of a process does
    assert not lock.exists()
    run = store.Store(tmp_path).load(ID)
    assert run is not None and run.evidence == growing(1).evidence
    assert (run.status, run.finished is None) == ("interrupted", False)
    assert "ended unexpectedly" in run.stop_reason
    assert run.verdict == tries.summary(run) == "Of 2 claims 1 holds and 1 is not known here."


def test_the_list_counts_claims_and_is_found_by_their_ids(kept: store.Store):
    kept.add(replace(small_claims(), verdict="All 99 claims hold."))
    (entry,) = kept.entries(Query(small_claims().claims[0]))
    assert (entry.workload, entry.size) == ("claims", "2 claims")
    assert entry.verdict == "Of 2 claims 1 holds and 1 is not known here.", "what a file says of itself is not believed"
    assert kept.entries(Query("other_claim")) == []


def test_strange_reasons_within_it_hide_no_run(kept: store.Store, tmp_path: Path):
    """As of a comparison: a `why` of a form that is not known is left out."""
    kept.add(small_claims())
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'runs.db'}")
    with engine.begin() as connection:
        for place in (1, 2):
            document = connection.execute(sa.text(f"SELECT document FROM parts WHERE place = {place}")).scalar_one()
            strange = zlib.decompress(document).replace(b'"why":{}', b'"why":{"fusions":7}')
            assert b"fusions" in strange
            connection.execute(
                sa.text(f"UPDATE parts SET document = :document WHERE place = {place}"),
                {"document": zlib.compress(strange)},
            )
    assert store.Store(tmp_path).load(ID) == small_claims()


def rows(text: Iterable[str]) -> list[list[str]]:
    return list(csv.reader(io.StringIO("".join(text))))


def test_its_tables_have_a_line_for_each_claim_and_for_each_sample():
    run = small_claims()
    head, holds, strange = rows(export.table_csv(run))
    assert head == ["claim", "question", "verdict", "sentence"]
    claim = known.get(run.claims[0])
    assert holds[:3] == [claim.id, claim.question, "holds"] and "the time of" in holds[3]
    assert strange == ["strange", "", "not known here", ""]
    head, *lines = rows(export.samples_csv(run))
    assert head[:3] == ["need", "at", "strategy"]
    compared, swept = (item.run for item in run.evidence[:2])
    bodies = [compared, *swept.points]
    assert len(lines) == sum(len(r.samples_s) for body in bodies for item in body.measurements for r in item.replicas)
    assert lines[0][0] == run.evidence[0].need and lines[0][1] == ""
    assert {line[1] for line in lines if line[0] == "swept"} == {"batch=10", "batch=100", "batch=1000"}


def test_nothing_of_a_file_from_elsewhere_is_executed(
    kept: store.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its source is text, its verdicts are computed from its figures, and nothing is started to show either."""
    hostile = f"open({str(tmp_path / 'executed')!r}, 'w').close()"
    run = small_claims()
    evidence = [
        replace(item, script=replace(item.script, source=hostile)) if item.script else item for item in run.evidence
    ]

    def start(*_: Any, **__: Any) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr("subprocess.Popen", start)
    monkeypatch.setattr("builtins.exec", start)
    found = imports.read(encode(replace(run, evidence=evidence)))
    assert kept.add(found) and kept.load(ID).evidence[2].script.source == hostile
    for shown in (
        table.render(found),
        export.markdown(found),
        "".join(export.table_csv(found)),
        "".join(export.samples_csv(found)),
    ):
        assert shown
    assert not (tmp_path / "executed").exists()


def test_its_summary_is_text_whatever_figures_say():
    words = f"{HOSTILE} | @somebody #12\nhttp://evil"
    run = small_claims()
    hostile = [Evidence(need=run.evidence[0].need, reason=words)]
    shown = export.markdown(replace(run, evidence=hostile, claims=[*run.claims, "*x*"], verdict=words), "http://here/")
    assert "Of 3 claims 1 cannot be told and 2 are not known here." in shown
    assert (
        "\\<img" in shown
        and "</script>\n" not in shown
        and "@somebody" not in shown
        and "http://evil" not in shown
        and "| \\*x\\* |" in shown
    )
    (line,) = [line for line in shown.splitlines() if "somebody" in line]
    assert line.replace("\\|", "").count("|") == 4, "a row of three cells"
    assert shown.endswith(f"Run {ID}, measured with Mapbench: <http://here/>\n") and "<summary>Environment" in shown
