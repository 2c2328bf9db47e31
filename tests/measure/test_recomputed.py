"""What is derived from the samples of frozen files stays the same, to the byte."""

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from measure.judge import analysis
from measure.model.run_file import decode, encode
from measure.sweep import findings
from tests.samples import run_of
from tests.simulation import Model, simulate

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("path", "digest"),
    [
        ("views/example_run.json", "fabb6ac647852ead"),
        ("tests/data/run_1.json", "f774cd6beb4a372c"),
        ("tests/data/sweep_1.json", "0908cda6debcb1c5"),
        ("tests/data/map_1.json", "b6ab6fc4d5c100ae"),
    ],
)
def test_the_same_samples_give_the_same_bytes(path: str, digest: str) -> None:
    """A digest changes only where another method is meant: then ``analysis.version`` changes with it."""
    run = decode((ROOT / path).read_bytes())
    analyse = findings.analyse if run.kind == "sweep" else analysis.analyse
    assert sha256(encode(analyse(run))).hexdigest()[:16] == digest


def test_recomputing_from_the_stored_samples_gives_the_same_numbers_to_the_last_digit() -> None:
    simulated = simulate({"a": 1e-3, "b": 1.02e-3, "c": 4e-3}, Model(), seed=5)
    first = analysis.analyse(run_of(*simulated.measurements))
    again = analysis.analyse(decode(encode(first)))
    assert encode(again) == encode(first)
    assert first.ranking


@pytest.mark.slow
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
