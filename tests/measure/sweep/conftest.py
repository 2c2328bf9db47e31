"""A runner of their own for tests of sweeps, and strategies that take as long as a test wants."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from measure import runner
from measure.engine.host_launcher import HostLauncher
from tests.engine import running, write_mapper

_SLEEP = """
    import os, time
    n = int(elems.shape[0])
    {hang}
    time.sleep({seconds})
    return fn(elems)
"""
SLEEPERS = {
    # Seconds of a call: the one is overtaken by the other at 6.3, and steeply, so that on a disturbed machine too one
    # process at 4 tells that it is faster there.
    "rises": ("1.6e-5 * n**3", ""),
    "stays": ("0.004", ""),
    "behind": ("0.02", ""),
    "slow": ("0.4", ""),
    "hangs_later": ("0.001", "while n >= 4: time.sleep(0.01)"),
    "waits": ("0.001", "while n >= 4 and not os.path.exists({gate!r}): time.sleep(0.01)"),
}


@pytest.fixture(scope="package", autouse=True)
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file that a strategy waits for; and strategies that take as long as a test wants."""
    folder = tmp_path_factory.mktemp("mappers")
    gate = folder / "open"
    for slug, (seconds, hang) in SLEEPERS.items():
        write_mapper(folder, slug, _SLEEP.format(seconds=seconds, hang=hang.format(gate=str(gate))))
    write_mapper(folder, "dial", _SLEEP.format(seconds="0.001 * level", hang=""))
    text = (folder / "dial.py").read_text().replace("map_with_dial(fn, elems)", "map_with_dial(fn, elems, level=1)")
    text = text.replace("Estimate, Mapper", "Estimate, Mapper\nfrom workloads.spec import Option")
    option = 'options=(Option("level", default=1, help="its pace", least=1, most=4),),'
    (folder / "dial.py").write_text(text.replace("MAPPER = Mapper(", f"MAPPER = Mapper({option}"))
    write_mapper(folder, "seems_slow", "return map_rightly(fn, elems)")
    text = (folder / "seems_slow.py").read_text().replace("plan.output_bytes, 0.01,", "plan.output_bytes, 20.0,")
    (folder / "seems_slow.py").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAPBENCH_MAPPERS", str(folder))
        yield gate


@pytest.fixture
def own(host: HostLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[runner.Runner]:
    monkeypatch.setenv("MAPBENCH_LOCK", str(tmp_path / "measure.lock"))
    with running(host, tmp_path) as running_:
        yield running_
