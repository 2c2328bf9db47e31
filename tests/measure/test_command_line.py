"""The command line: what it prints and where, its exit statuses, and what it refuses before it starts anything."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import strategies
import workloads
from measure import __main__ as command_line
from measure.claims import known
from measure.engine.launcher import HostState
from measure.judge import advice
from measure.model.request import RequestError
from measure.model.run import Run
from measure.model.run_file import decode, encode
from measure.runner import Snapshot
from measure.store.store import Store
from strategies.spec import MODES
from tests import claims, forked, synthetic
from tests.engine import DEADLINE_S, GONE_WITHIN_S, ROOT, descendants, environment, eventually, is_alive, write_mapper

SMALL = ("compare", "per_example_gradients", "--size", "batch=4", "--size", "features=8", "--budget", "3")


# --- without a host --------------------------------------------------------------------------------------------------


@dataclass
class _Runner:
    """A runner that has nothing but the answer."""

    run: Run
    fault: bool = False
    refusal: str = ""
    saved: bool = True

    def __call__(self, name: str) -> "_Runner":
        return self

    def host(self) -> HostState:
        return HostState("ready", "", ("CPU:0",), {})

    def submit(self, request: Any, *, why: bool) -> str:
        if self.refusal:
            raise RequestError(self.refusal)
        return self.run.id

    def submit_sweep(self, request: Any, *, continue_from: str | None) -> str:
        return self.run.id

    def submit_claims(self, ids: Sequence[str]) -> str:
        self.asked = list(ids)
        return self.run.id

    def wait(self, run_id: str, timeout_s: float) -> bool:
        return True

    def snapshot(self, run_id: str) -> Snapshot:
        return Snapshot(
            run=self.run, state="finished", message="timing", round_number=3, fault=self.fault, saved=self.saved
        )

    def cancel(self, run_id: str) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def _nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(**_: Any) -> None:
        raise AssertionError("a runner was started")

    monkeypatch.setattr("measure.runner.Runner", start)


@pytest.fixture(autouse=True)
def _signals_as_they_were() -> Any:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("_nothing_starts")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nothing"], ["workload 'nothing' is not known", "outer_product"]),
        (["outer_product", "--strategies", "warp.graph"], ["mapper 'warp' is not known", "map_fn"]),
        (["outer_product", "--strategies", "map_fn.warp"], ["map_fn has no mode 'warp'"]),
        (["outer_product", "--strategies", ""], ["no strategy is chosen"]),
        (["outer_product", "--workload-option", "model=mlp"], ["no option 'model'"]),
        (["outer_product", "--workload-option", "model"], ["--workload-option 'model' is not valid", "NAME=VALUE"]),
        (["outer_product", "--dtype", "int3"], ["dtype 'int3' is not valid", "float32"]),
        (["outer_product", "--device", "TPU:0"], ["device 'TPU:0' is not valid", "CPU:0"]),
        (["outer_product", "--size", "batch"], ["--size 'batch' is not valid", "NAME=VALUE"]),
        (["outer_product", "--size", "batch="], ["--size 'batch=' is not valid"]),
        (["outer_product", "--size", "side=0"], ["side=0 is not valid", "from 1 to"]),
        (["outer_product", "--size", "batch=-1"], ["batch=-1 is not valid"]),
        (["outer_product", "--size", "batch=1.5"], ["batch=1.5 is not valid"]),
        (["outer_product", "--size", f"batch={10**30}"], ["is not valid", "from 0 to 1000000"]),
        (["outer_product", "--size", "depth=3"], ["no size 'depth'", "batch, side"]),
        (["outer_product", "--budget", "nan"], ["budget nan is not valid"]),
        (["outer_product", "--budget=-1"], ["budget -1 is not valid"]),
        (["outer_product", "--memory-limit", "none"], ["memory limit=none is not valid"]),
        (
            ["outer_product", "--size", "batch=1000000", "--memory-limit", "9"],
            ["memory limit 9 MiB is below the inputs"],
        ),
        (["outer_product", "--size", "batch=16", "--size", "side=32", "--memory-limit", "9"], ["cannot fit", "9 MiB"]),
        (["outer_product", "--size", "batch=1000000", "--size", "side=32"], ["cannot fit", "batch="]),
        (
            ["square", "--size", "batch=1000000", "--strategies", "loop.eager", "--budget", "1"],
            ["cannot end in time", "ends after 70.0 s", "batch=", "budget="],
        ),
        (["outer_product", "--threads", "0"], ["threads=0 is not valid"]),
        (["outer_product", "--seed", "x"], ["seed=x is not valid"]),
        (["outer_product", "--json", "/nowhere/at/all.json"], ["/nowhere/at/all.json cannot be written"]),
        (["outer_product", "--json", "/tmp"], ["/tmp cannot be written: it is a folder"]),
    ],
)
def test_an_invalid_request_is_refused_with_status_2_before_anything_starts(
    capsys: pytest.CaptureFixture[str], arguments: Sequence[str], says: Sequence[str]
):
    assert command_line.main(["compare", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith("error: ") and printed.err.count("\n") == 1
    assert all(part in printed.err for part in says), printed.err


@pytest.mark.usefixtures("_nothing_starts")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["sweep", "square", "--size", "batch=500000,1000000", "--strategies", "loop.eager"],
            "ends after 5.00 min; by itself, batch=",
        ),
        (["claims", "--all"], "such a run ends after 5.00 min; try «What needs memory?», "),
    ],
)
def test_what_cannot_end_in_time_on_a_hosted_server_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: Sequence[str], says: str
):
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    assert command_line.main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith("error: This cannot end in time: ") and says in printed.err


@pytest.mark.usefixtures("_nothing_starts")
@pytest.mark.parametrize("arguments", [[], ["measure"], ["compare"], ["compare", "outer_product", "--sizes", "3"]])
def test_arguments_that_make_no_sense_have_status_2(capsys: pytest.CaptureFixture[str], arguments: Sequence[str]):
    with pytest.raises(SystemExit) as caught:
        command_line.main(arguments)
    assert caught.value.code == 2 and "usage:" in capsys.readouterr().err


def test_a_fault_of_mapbench_itself_has_status_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr("measure.runner.Runner", _Runner(synthetic.run(), fault=True))
    assert command_line.main(["compare", "outer_product"]) == 1


def test_what_the_runner_refuses_has_status_2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    refusal = "device 'GPU:63' is not on this machine: CPU:0 can be used"
    monkeypatch.setattr("measure.runner.Runner", _Runner(synthetic.run(), refusal=refusal))
    assert command_line.main(["compare", "outer_product", "--device", "GPU:63"]) == 2
    assert capsys.readouterr() == ("", f"error: {refusal}\n")


@pytest.mark.parametrize("kind", ["compare", "sweep"])
@pytest.mark.parametrize("file", [None, "run.json"])
def test_a_run_that_was_kept_nowhere_is_not_said_to_be(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str, file: str | None
):
    monkeypatch.chdir(tmp_path)
    run = synthetic.run() if kind == "compare" else synthetic.sweep()
    run = replace(run, status="interrupted", warnings=[advice.not_saved("Read-only file system")])
    monkeypatch.setattr("measure.runner.Runner", _Runner(run, saved=False))
    size = ["--size", "batch=10:100"] if kind == "sweep" else []
    assert command_line.main([kind, "outer_product", *size, *(["--json", file] if file else [])]) == 3
    printed = "".join(capsys.readouterr())
    where = "--json has it alone" if file else "what is printed is all that is left, and --json FILE would have it"
    assert f"this run could not be kept (Read-only file system): {where}\n" in printed
    assert printed.count("it is tried again") == 1, "while it was measured"
    assert "continued" not in printed
    if file:
        assert decode((tmp_path / file).read_bytes()).warnings == []


def test_a_file_that_cannot_be_written_after_all_is_said_and_the_table_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("measure.runner.Runner", _Runner(synthetic.run()))
    assert command_line.main(["compare", "outer_product", "--json", "/dev/full"]) == 1
    printed = capsys.readouterr()
    assert "--json /dev/full cannot be written: No space left on device" in printed.err
    assert synthetic.run().verdict in printed.out


def test_table_and_verdict_go_to_stdout_and_progress_to_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    run = synthetic.run()
    monkeypatch.setattr("measure.runner.Runner", _Runner(run))
    assert command_line.main(["compare", "image_sqrt", "--json", str(tmp_path / "run.json")]) == 0
    printed = capsys.readouterr()
    shown = [item for item in run.measurements if not item.twin_of]
    lines = printed.out.splitlines()
    assert lines[0].split()[:3] == ["rank", "strategy", "latency"]
    assert (
        len([line for line in lines[1 : len(shown) + 1] if line.split()[1] in {item.strategy for item in shown}]) == 17
    )
    assert run.verdict in lines
    assert "timing\n" in printed.err and all(f"  {item.strategy}: " in printed.err for item in shown)
    assert decode((tmp_path / "run.json").read_bytes()) == decode(encode(run))


def test_quiet_says_nothing_about_progress(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr("measure.runner.Runner", _Runner(synthetic.run()))
    assert command_line.main(["compare", "image_sqrt", "--quiet"]) == 0
    printed = capsys.readouterr()
    assert all(line.startswith("warning: ") for line in printed.err.splitlines()) and printed.out


def test_the_list_names_workloads_sizes_mappers_options_and_devices(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("measure.runner.Runner", _Runner(synthetic.run()))
    assert command_line.main(["list"]) == 0
    printed = capsys.readouterr().out
    for part in (
        "image_sqrt",
        "--size batch=100",
        "--dtype float32",
        "map_fn.graph",
        "parallel_iterations",
        "devices: CPU:0",
    ):
        assert part in printed


# --- claims ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> _Runner:
    """A runner that has tried a claim, which is so."""
    claim = known.all_claims()[0]
    answer = _Runner(claims.run([claim], claims.evidence(claim.tests, ["yes"] * len(claim.tests))))
    monkeypatch.setattr("measure.runner.Runner", answer)
    return answer


@pytest.mark.usefixtures("_nothing_starts")
def test_claims_are_listed(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert command_line.main(["claims"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "" and all(claim.id in printed.out for claim in known.all_claims())
    assert command_line.main(["claims", "--json", "-"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert command_line.main(["claims", "--json", str(tmp_path / "claims.json")]) == 0
    assert json.loads((tmp_path / "claims.json").read_text()) == listed and capsys.readouterr().out == ""
    assert [each["id"] for each in listed] == [claim.id for claim in known.all_claims()]


@pytest.mark.usefixtures("_nothing_starts")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nobody_says_so"], "claim 'nobody_says_so' is not known: 'claims' without a name lists them"),
        (["--all", "nobody_says_so"], "--all tries every claim: leave out the ids, or --all"),
        (["--markdown"], "--markdown prints verdicts: name claims, or --all"),
        (
            ["--json", "/nowhere/at/all.json"],
            "--json /nowhere/at/all.json cannot be written: its folder does not exist",
        ),
        (["--all", "--json", "/tmp"], "--json /tmp cannot be written: it is a folder"),
    ],
)
def test_claims_that_cannot_be_tried_are_refused(
    arguments: Sequence[str], says: str, capsys: pytest.CaptureFixture[str]
):
    assert command_line.main(["claims", *arguments]) == 2
    assert capsys.readouterr() == ("", f"error: {says}\n")


@pytest.mark.usefixtures("_nothing_starts")
def test_a_file_of_claims_that_is_broken_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(known, "broken", lambda: {"mine.py": "SyntaxError: no"})
    assert command_line.main(["claims"]) == 0
    assert capsys.readouterr().err == "warning: the claims of mine.py are left out: SyntaxError: no\n"


def test_verdicts_go_to_stdout_as_text_markdown_or_the_run(tried: _Runner, capsys: pytest.CaptureFixture[str]):
    (claim_id,) = tried.run.claims
    assert command_line.main(["claims", claim_id]) == 0
    printed = capsys.readouterr()
    assert f"HOLDS  {claim_id}" in printed.out and printed.out.endswith("Of 1 claim 1 holds.\n")
    assert printed.err == "timing\n" and tried.asked == [claim_id]
    assert command_line.main(["claims", claim_id, "--markdown", "--quiet"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("**Of 1 claim 1 holds.**\n") and "| **holds** |" in printed.out
    assert f"Run {tried.run.id}, measured with Mapbench." in printed.out and printed.err == ""


def test_all_claims_can_be_tried_and_the_run_written(
    tried: _Runner, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
):
    assert command_line.main(["claims", "--all", "--json", "-", "--quiet"]) == 0
    assert decode(capsysbinary.readouterr().out) == tried.run and tried.asked == []
    assert command_line.main(["claims", "--all", "--json", str(tmp_path / "run.json")]) == 0
    assert decode((tmp_path / "run.json").read_bytes()) == tried.run


@pytest.mark.parametrize(
    ("changes", "fault", "status"),
    [
        ({}, False, 0),
        ({"status": "budget", "evidence": []}, False, 0),
        ({"status": "cancelled", "evidence": []}, False, 3),
        ({"status": "interrupted", "evidence": []}, False, 3),
        ({"status": "interrupted", "evidence": []}, True, 1),
    ],
)
def test_the_status_of_claims_is_that_of_other_runs(
    tried: _Runner, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], fault: bool, status: int
):
    """Whatever their verdicts are: that a claim cannot be told is a result."""
    tried.run, tried.fault = replace(tried.run, **changes), fault
    assert command_line.main(["claims", *tried.run.claims, "--quiet"]) == status
    assert tried.run.claims[0] in capsys.readouterr().out


def test_a_run_of_claims_is_exported_without_charts(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "run.json"
    claim = known.all_claims()[0]
    file.write_bytes(encode(claims.run([claim], claims.evidence(claim.tests, ["no"] * len(claim.tests)))))
    forms = ("--csv", "--samples", "--markdown", "--json")
    assert command_line.main(["export", str(file), *forms, "--into", str(tmp_path / "out")]) == 0
    written = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    assert set(written) == {"run.csv", "run.samples.csv", "run.md", "run.json"}
    assert "does not hold" in written["run.csv"] and "**does not hold**" in written["run.md"]
    capsys.readouterr()
    assert command_line.main(["export", str(file), "--csv", "--svg", "--into", str(tmp_path / "none")]) == 2
    says = "error: a run of claims has no charts: --markdown and --csv write its verdicts\n"
    assert capsys.readouterr() == ("", says) and not (tmp_path / "none").exists()


# --- with a host -----------------------------------------------------------------------------------------------------


def _interpreter(*arguments: str, **more: Any) -> subprocess.Popen[bytes]:
    # Tests that run in a shell's background have it ignored, and so would the command.
    heeds = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    return subprocess.Popen([sys.executable, "-m", "measure", *arguments], preexec_fn=heeds, **more)


def start(
    tmp_path: Path, *arguments: str, begin: Callable[..., Any] = forked.start, **more: Any
) -> subprocess.Popen[bytes]:
    """The command; an interpreter of its own where ``begin`` is `_interpreter`."""
    extra = more.pop("env", {})
    return begin(
        *arguments,
        cwd=ROOT,
        env=environment(MAPBENCH_HOME=str(tmp_path / "home"), MAPBENCH_LOCK=str(tmp_path / "lock"), **extra),
        **({"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more),
    )


def test_the_list_is_data_too(tmp_path: Path):
    command = start(tmp_path, "list", "--json")
    out, err = command.communicate(timeout=DEADLINE_S)
    assert (command.returncode, err) == (0, b"")
    listed = json.loads(out)
    assert {"image_sqrt", "outer_product", "per_example_gradients"} <= {
        workload["slug"] for workload in listed["workloads"]
    }
    assert {"loop", "map_fn", "vectorized_map", "batched"} <= {mapper["slug"] for mapper in listed["mappers"]}
    assert "CPU:0" in listed["devices"] and listed["broken"] == {}
    for workload in listed["workloads"]:
        known = workloads.get(workload["slug"])
        assert workload["formula"] == known.formula and workload["dtypes"] == list(known.dtypes)
        assert {size["name"]: size["default"] for size in workload["sizes"]} == known.default_size()
        for variant in workload["grid"]:
            cells = {cell["strategy"]: cell for cell in variant["cells"]}
            everything = {f"{mapper.slug}.{mode}" for mapper in strategies.mappers() for mode in MODES}
            assert set(cells) == everything and len(variant["cells"]) == len(everything)
            assert all(bool(cell["reason"]) != cell["supported"] for cell in cells.values())
            chosen = known.variant(variant["options"])
            # The grid is of mappers and modes; the ways in which a workload writes its function are options.
            offered = [strategy for strategy in strategies.all_strategies(chosen) if strategy.element is None]
            works = {strategy.slug for strategy in offered if not strategies.unsupported(strategy, chosen)}
            assert {slug for slug, cell in cells.items() if cell["supported"]} == works
            assert {slug for slug, cell in cells.items() if cell["default"]} <= works
    gradients = next(workload for workload in listed["workloads"] if workload["slug"] == "per_example_gradients")
    assert [variant["options"]["model"] for variant in gradients["grid"]] == ["dense", "mlp", "cnn"]
    reasons = {cell["strategy"]: cell["reason"] for cell in gradients["grid"][2]["cells"]}
    assert reasons["batched.graph"] == "batched needs a rewrite 'batched', which per_example_gradients does not have"
    assert reasons["autograph.eager"] == "autograph has no mode eager: it has graph, xla"
    assert reasons["dataset.xla"].startswith("XLA compiles no tf.data pipelines")


def test_a_tensorflow_that_cannot_be_loaded_is_said_and_nobody_waits(tmp_path: Path):
    (tmp_path / "tensorflow.py").write_text("raise ImportError('/some/folder/libcuda.so: it is broken')")
    env = {"PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}
    command = start(tmp_path, *SMALL, begin=_interpreter, env=env)
    out, err = command.communicate(timeout=DEADLINE_S)
    reason = b"the measuring process ended with exit status 1: ImportError: libcuda.so: it is broken"
    assert (command.returncode, out) == (1, b"")
    assert err.splitlines() == [reason + b"; it is started again in 1 s", b"error: nothing can be measured: " + reason]


def test_a_run_can_be_written_to_stdout_in_place_of_the_table(tmp_path: Path):
    command = start(tmp_path, *SMALL, "--strategies", "batched.eager,loop.eager", "--json", "-", "--quiet")
    out, err = command.communicate(timeout=DEADLINE_S)
    assert command.returncode == 0
    assert all(line.startswith(b"warning: ") for line in err.splitlines()), err
    run = decode(out)
    assert [item.outcome for item in run.measurements] == ["ok"] * len(run.measurements)
    assert Store(tmp_path / "home").load(run.id) == run, "it is in the store as well"


def closed_pipe() -> int:
    """A descriptor that nobody reads any more."""
    read, write = os.pipe()
    os.close(read)
    return write


def test_readers_that_have_gone_away_cost_no_traceback(tmp_path: Path):
    file = tmp_path / "run.json"
    file.write_bytes(encode(synthetic.run("f" * 24)))
    command = start(tmp_path, "export", str(file), "--csv", "--into", str(tmp_path), stdout=closed_pipe())
    _, err = command.communicate(timeout=DEADLINE_S)
    assert (command.returncode, err) == (0, b"")


def test_readers_that_have_gone_away_do_not_cost_the_run(tmp_path: Path):
    file = tmp_path / "run.json"
    arguments = (*SMALL, "--strategies", "batched.eager", "--json", str(file))
    command = start(tmp_path, *arguments, stdout=closed_pipe(), stderr=closed_pipe(), begin=_interpreter)
    assert command.wait(DEADLINE_S) == 0
    assert decode(file.read_bytes()).measurements[0].outcome == "ok"


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_has_status_3_and_what_was_measured_is_written(tmp_path: Path, end: signal.Signals):
    mappers = tmp_path / "mappers"
    mappers.mkdir()
    write_mapper(mappers, "hangs", "while is_timed():\n    pass\nreturn map_rightly(fn, elems)")
    command = start(
        tmp_path, *SMALL, "--strategies", "batched.eager,hangs", "--json", str(tmp_path / "run.json"),
        env={"MAPBENCH_MAPPERS": str(mappers)},
    )  # fmt: skip
    assert command.stderr is not None
    said: list[bytes] = []
    while b"timing every strategy once\n" not in said:
        said.append(command.stderr.readline())
        assert said[-1], said
    pids = descendants(command.pid)
    command.send_signal(end)
    out, _ = command.communicate(timeout=DEADLINE_S)
    assert command.returncode == 3
    run = decode((tmp_path / "run.json").read_bytes())
    assert run.status == "cancelled"
    assert all(item.memory is not None for item in run.measurements)
    assert run.measurement("hangs.eager").outcome == "cancelled"
    assert b"hangs.eager" in out and b"cancelled by a person" in out
    eventually(lambda: not [pid for pid in pids if is_alive(pid)], "nothing is left", GONE_WITHIN_S)


def _catches(pid: int, number: signal.Signals) -> bool:
    """True when the process has a handler of its own for a signal."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return bool(int(fields["SigCgt"], 16) >> (number - 1) & 1)


@pytest.mark.parametrize("library", ["", "msgspec", "psutil"])
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_interrupted_while_it_loads_says_so_in_one_line(
    tmp_path: Path, end: signal.Signals, library: str
):
    command = start(tmp_path, *SMALL, begin=_interpreter)
    # Python by itself does nothing about SIGTERM: from then on the command is ready for either.
    eventually(lambda: _catches(command.pid, signal.SIGTERM), "the command is about to load")
    eventually(lambda: library in Path(f"/proc/{command.pid}/maps").read_text(), f"it loads {library}")
    command.send_signal(end)
    out, err = command.communicate(timeout=DEADLINE_S)
    assert (command.returncode, out, err) == (3, b"", b"interrupted before anything was measured\n")


def test_interrupted_before_anything_was_measured_it_has_status_3_too(tmp_path: Path):
    command = start(tmp_path, *SMALL, begin=_interpreter)
    pids = eventually(lambda: descendants(command.pid), "the host starts")
    command.send_signal(signal.SIGINT)
    out, err = command.communicate(timeout=DEADLINE_S)
    assert (command.returncode, out) == (3, b"") and err == b"interrupted before anything was measured\n"
    eventually(lambda: not [pid for pid in pids if is_alive(pid)], "nothing is left", GONE_WITHIN_S)
