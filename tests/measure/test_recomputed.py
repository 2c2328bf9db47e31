"""What is derived from the samples of frozen files stays the same, to the byte."""

from hashlib import sha256
from pathlib import Path

import pytest

from measure.judge import analysis
from measure.model.run import decode, encode
from measure.sweep import analysis as sweep_analysis

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
    analyse = sweep_analysis.analyse if run.kind == "sweep" else analysis.analyse
    assert sha256(encode(analyse(run))).hexdigest()[:16] == digest
