"""The command that repeats a run: read by the command line, it asks for the same."""

import shlex
from typing import Any

import pytest
from msgspec.structs import replace

from measure.arguments import compare_request, given, parser, sweep_request
from measure.claims import known
from measure.output import command
from measure.run.request import parse
from measure.run.run import Run
from measure.run.sweep_request import of_run, parse_sweep
from tests import claims, synthetic
from tests.synthetic import HOSTILE

EVERYTHING = {
    "workload": "per_example_gradients", "workload_options": {"model": "mlp"}, "size": {"batch": 7}, "device": "GPU:1",
    "strategies": ["map_fn.graph?parallel_iterations=1", "batched"], "budget_s": 7.25, "memory_limit_mib": 512,
    "threads": 3, "seed": 5, "allocator": "default",
}  # fmt: skip


def read(run: Run) -> Any:
    python, flag, module, *words = shlex.split(command.of(run))
    assert (python, flag, module) == ("python", "-m", "measure")
    return parser().parse_args(words)


@pytest.mark.parametrize("raw", [{"workload": "square"}, EVERYTHING], ids=["usual", "everything"])
def test_a_comparison(raw: dict[str, Any]):
    run = replace(synthetic.run(), request=parse(raw))
    assert compare_request(read(run)) == run.request
    assert ("--seed" in command.of(run)) == ("seed" in raw), "what every run has is left out"


@pytest.mark.parametrize(
    "more",
    [
        {"axes": [{"name": "batch", "range": "1:1000:5"}]},
        {"axes": [{"name": name, "values": [4, 8], "scale": "linear"} for name in ("batch", "side")]},
        {"axes": [{"name": "chunk", "kind": "option", "values": [4, 8]}], "strategies": ["chunked.graph", "batched"]},
    ],
    ids=["line", "map", "option"],
)  # fmt: skip
def test_a_sweep(more: dict[str, Any]):
    asked = parse_sweep({"workload": "outer_product", **more})
    run = replace(synthetic.sweep(), request=asked.base, axes=list(asked.axes), points=[])
    assert sweep_request(read(run)) == of_run(run) == asked


def test_claims():
    tried = [claim.id for claim in known.all_claims()][:2]
    assert read(claims.run(known.all_claims()[:2])).claim == tried


def test_a_function_of_a_persons_own_is_in_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = synthetic.of_function(synthetic.run())
    code = "def softened(x):\n    return x\n\n\ndef rows(batch=4): ...\n\n\nwhole = right = softened\n"
    own = replace(run.request.own, given=replace(run.request.own.given, code=code, batched="whole", reference="right"))
    run = replace(run, request=replace(run.request, own=own))
    (tmp_path / command.OWN_FILE).write_text(code)
    assert given(read(run)) == own.given


@pytest.mark.parametrize("name", [HOSTILE, "--workload-file=x.py", "$(x)", "a;b", "../x.py:f", "a\nb", ""])
def test_what_nobody_can_have_asked_for_has_no_command(name: str):
    request = synthetic.run().request
    for changed in (replace(request, workload=name), replace(request, size={name: 1}), replace(request, dtype=name)):
        assert command.of(replace(synthetic.run(), request=changed)) == ""
    assert command.of(replace(claims.run([]), claims=[name])) == ""
    assert command.of(replace(synthetic.run(), request=replace(request, workload="in_a_file_of_ones_own"))) == ""
