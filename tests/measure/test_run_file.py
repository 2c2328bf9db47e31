"""The run file of a real comparison, made by the command line: schema, exact memory, samples, and nothing lost."""

import hashlib
import json
import os
import subprocess
from dataclasses import dataclass
from datetime import datetime

import pytest

import strategies
import workloads
from measure.judge.analysis import analyse
from measure.model.run import Run
from measure.model.run_file import decode, encode
from tests import forked
from tests.engine import ROOT, environment

BATCH, SIDE = 32, 20
OUTPUT_BYTES = BATCH * SIDE**4 * 4  # float32
# What cannot run inside a compiled function, and is said so without being tried.
UNSUPPORTED = {"dataset.xla", "dataset_batched.xla", "numpy_function.xla"}
# What the tests below look at.
KNOWN = {"batched.graph", "vectorized_map.xla", "map_fn.graph"}


def _chosen() -> list[str]:
    """One strategy of each mapper, in another mode from each to the next, and those that the tests name."""
    offered = [strategy.slug for strategy in strategies.all_strategies(workloads.get("outer_product"))]
    by_mapper: dict[str, list[str]] = {}
    for slug in offered:
        if slug not in UNSUPPORTED:
            by_mapper.setdefault(slug.partition(".")[0], []).append(slug)
    taken = {of_mapper[place % len(of_mapper)] for place, of_mapper in enumerate(by_mapper.values())}
    return [slug for slug in offered if slug in taken | KNOWN | UNSUPPORTED]


EVERY = _chosen()


@dataclass(frozen=True)
class _Made:
    out: str
    err: str
    data: bytes
    run: Run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> _Made:
    folder = tmp_path_factory.mktemp("run_file")
    arguments = [
        "compare",
        "outer_product",
        "--size",
        f"batch={BATCH}",
        "--size",
        f"side={SIDE}",
        "--strategies",
        ",".join(EVERY),
    ]
    command = forked.start(
        # Where the ranking is open by then, it stays open.
        *(*arguments, "--budget", "8", "--json", str(folder / "run.json")),
        cwd=ROOT,
        env=environment(MAPBENCH_HOME=str(folder / "home"), MAPBENCH_LOCK=os.environ["MAPBENCH_LOCK"]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    out, err = command.communicate(timeout=600)
    assert command.returncode == 0, err
    data = (folder / "run.json").read_bytes()
    return _Made(out, err, data, decode(data))


def test_it_is_a_run_file_that_loses_nothing_when_it_is_read_and_written(made: _Made):
    assert json.loads(made.data)["schema"] == "mapbench.run/1"
    assert decode(encode(made.run)) == made.run and encode(made.run) + b"\n" == made.data


def test_every_strategy_is_in_it_and_was_measured(made: _Made):
    asked = [item for item in made.run.measurements if not item.twin_of]
    assert [item.strategy for item in asked] == EVERY
    others = {item.strategy: item.outcome for item in asked if item.outcome != "ok"}
    assert others == dict.fromkeys(UNSUPPORTED, "unsupported")
    assert made.run.status in ("complete", "budget")
    assert sorted(slug for group in made.run.ranking for slug in group) == sorted(set(EVERY) - UNSUPPORTED)


def test_it_says_when_and_what_was_asked(made: _Made):
    run = made.run
    created, started, ended = (
        datetime.fromisoformat(str(moment)) for moment in (run.created, run.started, run.finished)
    )
    assert created <= started < ended and created.utcoffset() is not None
    assert run.request.size == {"batch": BATCH, "side": SIDE} and run.request.strategies == EVERY
    assert run.environment["tensorflow"] and run.environment["start_method"] == "fork"


@pytest.mark.parametrize("slug", ["batched.graph", "vectorized_map.xla"])
def test_what_only_writes_its_output_peaks_at_its_bytes(made: _Made, slug: str):
    memory = made.run.measurement(slug).memory
    assert memory is not None and memory.output_bytes == OUTPUT_BYTES and memory.method == "events"
    assert memory.peak_bytes == pytest.approx(OUTPUT_BYTES, rel=1e-3)


def test_map_fn_peaks_at_twice_its_output_while_it_stacks(made: _Made):
    memory = made.run.measurement("map_fn.graph").memory
    # The list of elements, a four hundredth of the output, may or may not be freed by then.
    assert memory is not None and memory.peak_bytes == pytest.approx(2 * OUTPUT_BYTES, rel=3e-3)
    stacked = [held for held in memory.at_peak if "TensorListStack" in held.op]
    assert stacked and stacked[0].bytes == pytest.approx(OUTPUT_BYTES, rel=1e-3)
    assert memory.timeline is not None and max(memory.timeline.live_bytes) == memory.peak_bytes


def test_every_sample_carries_its_round_and_its_time_and_those_that_were_disturbed_are_known(made: _Made):
    # The budget may be spent before a twin is sampled.
    for item in (item for item in made.run.measurements if item.outcome == "ok" and not item.twin_of):
        assert item.replicas and item.first_call_s is not None and item.latency is not None
        # A process that waited to be sampled when the budget was spent has none.
        for replica in (replica for replica in item.replicas if replica.ended != "interrupted"):
            assert len(replica.rounds) == len(replica.at_s) == len(replica.samples_s) >= 3
            assert len(set(replica.rounds)) == 1, "a process lives for one visit"
            assert replica.at_s == sorted(replica.at_s) and all(sample_s > 0 for sample_s in replica.samples_s)
            assert set(replica.disturbed) <= set(range(len(replica.samples_s)))
            assert replica.calls_per_sample >= 1 and replica.ended == "done"


def test_all_that_is_derived_can_be_computed_anew_from_it(made: _Made):
    assert analyse(made.run) == made.run


def test_the_code_that_ran_is_in_it(made: _Made):
    for item in made.run.measurements:
        assert item.code is not None and hashlib.sha256(item.code.source.encode()).hexdigest() == item.code.sha256
        compile(item.code.source, item.strategy, "exec")


def test_the_table_is_on_stdout_and_progress_on_stderr(made: _Made):
    assert all(slug in made.out and f"  {slug}: ok" in made.err for slug in set(EVERY) - UNSUPPORTED)
    assert made.run.verdict in made.out
    assert "measuring memory and correctness\n" in made.err and "Traceback" not in made.err
