"""Frozen files show what they showed, and what is derived from their samples anew stays the same."""

import json
import math
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from measure.judge import analysis
from measure.model.run import Analysis, Measurement, Run
from measure.model.run_file import decode, encode
from measure.output import rows
from measure.sweep import findings
from tests.samples import run_of
from tests.simulation import Model, simulate

ROOT = Path(__file__).parents[2]
# Of earlier methods: medians of processes' samples, and intervals of other kinds.
# What each is written as, by its digest.
EARLIER = {
    "tests/data/run_1.json": "f5fa2d4f8a526536",
    "tests/data/explained_1.json": "ea7c253e24511ac5",
    "tests/data/sweep_1.json": "39a0665e86902de2",
    "tests/data/map_1.json": "d966d6235c2ec069",
    "tests/data/option_1.json": "af1cb4fee384e4cd",
}


def frozen(path: str) -> Run:
    return decode((ROOT / path).read_bytes())


@pytest.mark.parametrize(("path", "digest"), EARLIER.items())
def test_a_file_of_an_earlier_method_stays_as_it_is_when_it_is_opened_and_written(path: str, digest: str) -> None:
    run = frozen(path)
    assert run.analysis.version < Analysis().version
    assert decode(encode(run)) == run
    # Written as it always was: without what only this method's files have.
    assert b"typical_s" not in encode(run) and b"disturbed" not in encode(run)
    assert sha256(encode(run)).hexdigest()[:16] == digest


def of_interval(item: Measurement) -> tuple[float, float]:
    """The variance that a latency's interval shows, and its degrees of freedom."""
    assert item.latency is not None
    degrees = max(1, sum(bool(replica.samples_s) for replica in item.replicas) - 1)
    half = math.log(item.latency.high_s / item.latency.low_s) / 2
    return (half / stats.t.ppf(0.975, degrees)) ** 2, degrees


@pytest.mark.parametrize("path", ["tests/data/run_1.json", "tests/data/explained_1.json"])
def test_a_file_of_an_earlier_method_shows_what_it_showed(path: str) -> None:
    """Its latencies, ranks and verdict are those that it holds, and ratios follow from them, not from its samples."""
    run = frozen(path)
    anew = analysis.analyse(run)
    baseline = run.ranking[-1][-1]
    shown = {row.slug: row for row in rows.make(run, baseline)}
    for item in run.measurements:
        if item.latency is None or item.twin_of:
            continue
        row = shown[item.strategy]
        assert (row.median_s, row.low_s, row.high_s) == (item.latency.median_s, item.latency.low_s, item.latency.high_s)
        base = run.measurement(baseline).latency
        assert base is not None and row.typical_s is None
        assert row.factor == pytest.approx(base.median_s / item.latency.median_s, rel=1e-9)
    ranked = [slug for group in run.ranking for slug in group]
    assert [row.slug for row in shown.values() if row.rank is not None] == ranked
    fastest, slowest = (run.measurement(slug) for slug in (ranked[0], baseline))
    variances, degrees = zip(*map(of_interval, (fastest, slowest)), strict=True)
    welch = sum(variances) ** 2 / sum(variance**2 / own for variance, own in zip(variances, degrees, strict=True))
    factor = math.exp(2 * stats.t.ppf(0.975, welch) * math.sqrt(sum(variances)))
    row = shown[fastest.strategy]
    assert row.factor_low is not None and row.factor_high is not None
    assert row.factor_high / row.factor_low == pytest.approx(factor, rel=1e-6)
    now = {row.slug: row for row in rows.make(anew, baseline)}
    assert any(now[slug].low_s != shown[slug].low_s for slug in ranked), "anew they are others"


@pytest.mark.parametrize(
    ("path", "digest"),
    [
        ("views/example_run.json", "bb39b1d16d90fced"),
        ("tests/data/run_1.json", "2d6b87dc614fd459"),
        ("tests/data/sweep_1.json", "ea72e3df4204f075"),
        ("tests/data/map_1.json", "95fc402423f33890"),
    ],
)
def test_the_same_samples_give_the_same_figures(path: str, digest: str) -> None:
    """A digest changes only where another method is meant: then ``analysis.version`` changes with it."""
    run = frozen(path)
    analyse = findings.analyse if run.kind == "sweep" else analysis.analyse
    assert sha256(json.dumps(rounded(json.loads(encode(analyse(run))))).encode()).hexdigest()[:16] == digest


def rounded(value: Any) -> Any:
    """The value with numbers of seven digits: of ten, as they are written, matrix products of another processor turn
    the last one."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.7g}") if isinstance(value, float) else value


def test_recomputing_from_the_stored_samples_gives_the_same_numbers_to_the_last_digit() -> None:
    simulated = simulate({"a": 1e-3, "b": 1.02e-3, "c": 4e-3}, Model(), seed=5)
    first = analysis.analyse(run_of(*simulated.measurements))
    again = analysis.analyse(decode(encode(first)))
    assert encode(again) == encode(first)
    assert first.ranking and first.analysis == Analysis(seed=first.analysis.seed)


def test_another_processor_computes_the_same_numbers_to_the_last_digit() -> None:
    """The libraries have kernels for each family of processors, which differ in the last bits."""
    script = (
        "import sys; from measure.judge import analysis; from measure.model.run_file import decode, encode; "
        "sys.stdout.buffer.write(encode(analysis.analyse(decode(sys.stdin.buffer.read()))))"
    )
    here, elsewhere = (
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env={**os.environ, **kernels},
            input=(ROOT / "views/example_run.json").read_bytes(),
            capture_output=True,
            check=True,
        ).stdout
        for kernels in ({}, {"OPENBLAS_CORETYPE": "Prescott", "OPENBLAS_NUM_THREADS": "1"})
    )
    assert here == elsewhere
    latencies = [item.latency for item in decode(here).measurements if item.latency]
    assert latencies and all(each.low_s == float(f"{each.low_s:.10g}") for each in latencies)
