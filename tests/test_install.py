"""The project can be installed, and from any folder measures a run in whose file is all that was found."""

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from statistics import median

import pytest

from measure.judge.analysis import analyse
from measure.run.encoding import decode, encode
from tests.browser import ROOT
from tests.cluster import INSTALL
from tests.deadlines import RUN_S
from tests.test_docs import README, blocks

pytestmark = pytest.mark.usefixtures("live")

PACKAGES = ("mapbench", "measure", "strategies", "views", "workloads")
OUTPUT_BYTES = 100 * 16**4 * 4  # float32, at the default size


def outside(folder: Path, *command: str | Path, **variables: str) -> str:
    """What a command prints that is started in a folder from which the working tree cannot be imported."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=folder, env={**environment, **variables}, capture_output=True, text=True, timeout=RUN_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_the_project_is_installed_whole_and_measures_the_example_of_the_readme_from_another_folder(
    tmp_path: Path,
) -> None:
    source, prefix, file = (tmp_path / name for name in ("source", "prefix", "run.json"))
    source.mkdir()
    # A build leaves files beside what it is built from.
    for name in ("pyproject.toml", "setup.py", "requirements.txt", "README.md", "app.py", ".streamlit", *PACKAGES):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy2)(ROOT / name, source / name)
    # What it needs, for other machines too, is installed here, and cannot be brought: so all of it is named.
    pip = (sys.executable, "-m", *shlex.split(INSTALL), "--quiet", "--no-build-isolation", "--no-index")
    assert "extra" not in outside(source, *pip, "--prefix", prefix)
    installed = Path(sysconfig.get_path("purelib", "posix_prefix", {"base": prefix}))
    own = [path for name in PACKAGES for path in (ROOT / name).rglob("*") if path.suffix in (".py", ".json")]
    names = [path.relative_to(ROOT) for path in (*own, ROOT / "app.py", ROOT / ".streamlit" / "config.toml")]
    assert [name for name in names if not (installed / name).is_file()] == []
    (example,) = blocks(README, "sh", executed=True)
    words = shlex.split(example)
    assert words[:3] == ["python", "-m", "measure"]
    # Without oneDNN and its pool, these outputs would come from the C library but for the line of the script.
    variables = {"PYTHONPATH": str(installed), "TF_ENABLE_ONEDNN_OPTS": "0"}
    options = (*words[3:], "--budget", "60", "--quiet", "--json", str(file))
    out, data = outside(tmp_path, prefix / "bin" / "mapbench", *options, **variables), file.read_bytes()
    run = decode(data)
    assert json.loads(data)["schema"] == "mapbench.run/1" and encode(run) + b"\n" == data
    assert analyse(run) == run, "all that is derived can be computed anew from it"
    assert run.limit is not None and 0 < run.limit.seconds < 1 and run.limit.dispatch_s
    assert run.environment["tensorflow"] and run.environment["start_method"] == "fork"
    asked = {item.strategy: item for item in run.measurements if not item.twin_of}
    assert run.verdict in out and list(asked) == run.request.strategies and len(asked) == 6
    timed = {slug: item for slug, item in asked.items() if item.outcome == "ok"}
    assert {"batched.graph", "map_fn.graph"} <= set(timed)
    assert {item.outcome for item in asked.values()} <= {"ok", "not_run"}  # where the machine is too busy
    for slug, item in timed.items():
        assert slug in out and item.error is None and item.correctness.ok
        assert item.memory.output_bytes == OUTPUT_BYTES <= item.memory.peak_bytes
        assert hashlib.sha256(item.code.source.encode()).hexdigest() == item.code.sha256
        compile(item.code.source, slug, "exec")
        for replica in item.replicas:
            assert replica.ended == "done" and all(sample_s > 0 for sample_s in replica.samples_s)
    for replica in asked["batched.graph"].replicas:
        assert median(replica.faults) < OUTPUT_BYTES / 4096 / 4, "a call takes no new page for each of its output"
    default = {item.twin_of for item in run.measurements if item.has_default_memory}
    assert default & set(run.ranking[0]), "who leads is timed with the C library's memory too"
    assert "TensorListStack" in str([held.op for held in asked["map_fn.graph"].memory.at_peak])
