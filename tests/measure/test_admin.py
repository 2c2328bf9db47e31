"""An operator's commands: what they show, what they end and delete, and what they say."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from measure import __main__
from measure.store.queue import Work
from measure.store.store import Store
from tests import synthetic
from tests.keeping import put

A, B, C, D = ("a" * 24, "b" * 24, "c" * 24, "d" * 24)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    kept = Store(tmp_path)
    put(kept, replace(synthetic.run(A), created="2025-01-01T00:00:00.000Z"), owner="ann-secret")
    put(kept, replace(synthetic.run(B), created="2025-01-02T00:00:00.000Z"), owner="bob")
    put(kept, synthetic.partial(2, C), live=True)
    kept.ask(Work(D, "measure", D, forecast_s=9.0), synthetic.partial(0, D))
    return kept


def said(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert __main__.main(["admin", *arguments]) == status
    out, err = capsys.readouterr()
    return err if status else out


def states(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    return {one["id"]: one["state"] for one in json.loads(said(capsys, "list", "--json"))}


def test_all_runs_are_listed_with_their_state_and_no_secret(kept: Store, capsys: pytest.CaptureFixture[str]):
    assert states(capsys) == {A: "complete", B: "complete", C: "running", D: "waiting"}
    shown = said(capsys, "list")
    assert "4 runs, " in shown and all(run_id in shown for run_id in (A, B, C, D))
    assert "secret" not in shown and "bob" not in said(capsys, "list", "--json")


def test_runs_are_pinned_and_deleted_and_what_goes_on_is_ordered_to_end(
    kept: Store, capsys: pytest.CaptureFixture[str]
):
    assert said(capsys, "pin", A) == f"pinned {A}\n" and "complete, pinned" in said(capsys, "list")
    assert said(capsys, "unpin", A) == f"unpinned {A}\n" and "pinned" not in said(capsys, "list")
    said(capsys, "cancel", C)
    assert kept.queue.ordered(C) == "cancel"
    assert A in said(capsys, "cancel", A, status=2) and "is not known" in said(capsys, "cancel", "e" * 24, status=2)
    assert C in said(capsys, "delete", A, C, status=2)
    assert set(states(capsys)) == {B, C, D}
    assert "it waited" in said(capsys, "cancel", D) and states(capsys)[D] == "cancelled"


def test_a_server_is_drained_and_takes_runs_again(kept: Store, capsys: pytest.CaptureFixture[str]):
    assert "1 runs are measured and end, 1 wait" in said(capsys, "drain") and kept.queue.is_drained()
    said(capsys, "resume")
    assert not kept.queue.is_drained()


def test_runs_are_pruned_as_far_as_they_match(kept: Store, capsys: pytest.CaptureFixture[str]):
    origin = {one["id"]: one["origin"] for one in json.loads(said(capsys, "list", "--json"))}[B]
    assert "1 runs would be deleted" in said(capsys, "prune", "--origin", origin, "--dry-run")
    for arguments, names in (
        ([], "at least one of"),
        (["--older-than", "30"], "'30' is not valid: a number with m, h, d or w"),
        (["--larger-than", "10MB"], "'10MB' is not valid: a number with B, KiB, MiB or GiB"),
    ):
        assert names in said(capsys, "prune", *arguments, status=2)
    assert set(states(capsys)) == {A, B, C, D}
    said(capsys, "pin", A)
    sizes = [one["bytes"] for one in json.loads(said(capsys, "list", "--json"))]
    assert "1 runs would be deleted" in said(capsys, "prune", "--keep-bytes", f"{sum(sizes) - 1}B", "--dry-run")
    assert "1 runs deleted" in said(capsys, "prune", "--origin", origin, "--older-than", "30d")
    assert set(states(capsys)) == {A, C, D}
    assert "0 runs deleted" in said(capsys, "prune", "--keep-bytes", "1KiB"), "what is pinned or goes on stays"
    said(capsys, "unpin", A)
    assert "0 runs deleted" in said(capsys, "prune", "--keep-bytes", "1KiB", "--larger-than", "1GiB")
    assert "1 runs deleted" in said(capsys, "prune", "--keep-bytes", "1KiB") and set(states(capsys)) == {C, D}
