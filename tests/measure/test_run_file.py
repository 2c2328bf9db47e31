"""The run file of a real comparison, made by the command line: nothing is lost, and all is in it that was found."""

import hashlib
import json
import os
import subprocess
from pathlib import Path
from statistics import median

import pytest

from measure.judge.analysis import analyse
from measure.run.encoding import decode, encode
from tests.deadlines import RUN_S
from tests.engine import ROOT, environment, start_command

BATCH, SIDE = 100, 16
OUTPUT_BYTES = BATCH * SIDE**4 * 4  # float32
SLUGS = ["batched.graph", "map_fn.graph", "dataset.xla"]
# What cannot run inside a compiled function, and is said so without being tried.
UNSUPPORTED = "dataset.xla"


@pytest.mark.usefixtures("live")
def test_a_comparison_by_the_command_line_makes_a_run_file_that_holds_all_of_it(tmp_path: Path):
    sizes = ("--size", f"batch={BATCH}", "--size", f"side={SIDE}")
    command = start_command(
        *("compare", "outer_product", *sizes, "--strategies", ",".join(SLUGS)),
        *("--budget", "60", "--json", str(tmp_path / "run.json")),
        cwd=ROOT,
        # Without oneDNN and its pool, these outputs would come from the C library but for the line of the script.
        env=environment(
            MAPBENCH_HOME=str(tmp_path / "home"), MAPBENCH_LOCK=os.environ["MAPBENCH_LOCK"], TF_ENABLE_ONEDNN_OPTS="0"
        ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    out, err = command.communicate(timeout=RUN_S)
    assert command.returncode == 0 and "Traceback" not in err, err
    data = (tmp_path / "run.json").read_bytes()
    run = decode(data)
    assert json.loads(data)["schema"] == "mapbench.run/1" and encode(run) + b"\n" == data
    assert analyse(run) == run, "all that is derived can be computed anew from it"
    assert run.verdict in out and all(slug in out for slug in SLUGS[:2])
    assert run.request.size == {"batch": BATCH, "side": SIDE} and run.request.strategies == SLUGS
    assert run.limit is not None and 0 < run.limit.seconds < 1 and run.limit.dispatch_s
    assert run.environment["tensorflow"] and run.environment["start_method"] == "fork"
    asked = {item.strategy: item for item in run.measurements if not item.twin_of}
    assert list(asked) == SLUGS and asked.pop(UNSUPPORTED).outcome == "unsupported"
    for slug, item in asked.items():
        assert item.error is None and item.correctness is not None and item.correctness.ok
        assert item.memory is not None and item.memory.output_bytes == OUTPUT_BYTES <= item.memory.peak_bytes
        assert item.code is not None and hashlib.sha256(item.code.source.encode()).hexdigest() == item.code.sha256
        compile(item.code.source, slug, "exec")
        for replica in item.replicas:
            assert replica.ended == "done" and all(sample_s > 0 for sample_s in replica.samples_s)
            assert median(replica.faults) < OUTPUT_BYTES / 4096 / 4, "a call takes no new page for each of its output"
    default = {item.twin_of: item for item in run.measurements if item.has_default_memory}
    assert "batched.graph" in default, "the fastest is timed with the C library's memory too"
    assert "TensorListStack" in str([held.op for held in asked["map_fn.graph"].memory.at_peak])
