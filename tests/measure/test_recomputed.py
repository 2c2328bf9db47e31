"""Frozen files show what they showed, and what is derived from their samples anew stays the same."""

import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

from measure.judge import analysis
from measure.model.run import Analysis, Run
from measure.model.run_file import decode
from measure.output import rows
from measure.sweep import findings

ROOT = Path(__file__).parents[2]


def frozen(path: str) -> Run:
    return decode((ROOT / path).read_bytes())


@pytest.mark.parametrize("name", ["run_1", "explained_1"])
def test_a_file_of_an_earlier_method_shows_what_it_showed(name: str) -> None:
    """Its latencies, ranks and verdict are those that it holds, and ratios follow from them, not from its samples."""
    run = frozen(f"tests/data/{name}.json")
    baseline = run.ranking[-1][-1]
    shown = {row.slug: row for row in rows.make(run, baseline)}
    base = run.measurement(baseline).latency
    assert base is not None
    for item in run.measurements:
        if item.latency is None or item.twin_of:
            continue
        row = shown[item.strategy]
        assert (row.median_s, row.low_s, row.high_s) == (item.latency.median_s, item.latency.low_s, item.latency.high_s)
        assert row.typical_s is None and row.factor == pytest.approx(base.median_s / item.latency.median_s, rel=1e-9)
    ranked = [slug for group in run.ranking for slug in group]
    assert [row.slug for row in shown.values() if row.rank is not None] == ranked
    now = {row.slug: row for row in rows.make(analysis.analyse(run), baseline)}
    assert any(now[slug].low_s != shown[slug].low_s for slug in ranked), "anew they are others"


def differences(one: Any, other: Any, path: str = "$") -> list[str]:
    """Where two documents differ: in figures by more than the libraries' kernels for families of processors do, each of
    which computes other last bits. An end of an interval near zero is the difference of larger figures."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [each for key in one for each in differences(one[key], other[key], f"{path}.{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [
            each
            for place, (left, right) in enumerate(zip(one, other, strict=True))
            for each in differences(left, right, f"{path}[{place}]")
        ]
    if isinstance(one, float) and isinstance(other, float) and math.isclose(one, other, rel_tol=1e-8, abs_tol=1e-10):
        return []
    return [] if one == other else [f"{path}: {one!r} and {other!r}"]


def test_the_same_samples_give_the_figures_ranks_and_sentences_that_the_examples_hold() -> None:
    """They change only where another method is meant: then ``analysis.version`` changes with them."""
    claims = frozen("views/example_claims.json").evidence or []
    sweeps = [item.run for item in claims if item.run and item.run.kind == "sweep"]
    assert any(run.fits for run in sweeps)
    for run in (frozen("views/example_run.json"), *sweeps):
        assert run.analysis.version == Analysis().version
        again = (findings.analyse if run.kind == "sweep" else analysis.analyse)(run)
        assert differences(*(msgspec.to_builtins(each) for each in (run, again))) == [], run.request.workload
