"""The log of a measuring process: bounded while that lives, and nothing that measuring depends on."""

from pathlib import Path

from measure.engine.host_log import HostLog


def test_a_process_that_prints_without_end_fills_no_disk(tmp_path: Path):
    path = tmp_path / "home" / "host.log"
    log = HostLog(path)
    for number in range(80):
        log.write(f"{number:05}\n".encode() * 10_000)
    files = sorted(path.parent.iterdir())
    assert [file.name for file in files] == ["host.log", "host.old.log"]
    assert all(0 < file.stat().st_size <= 2**20 for file in files)
    assert path.read_bytes().endswith(b"00079\n"), "what came last is kept"
    (tmp_path / "file").touch()
    HostLog(tmp_path / "file" / "host.log").write(b"lost")  # and nothing is raised where it cannot be written
