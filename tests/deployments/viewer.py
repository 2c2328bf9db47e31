"""A viewer in a memory cgroup of 200 MB, in which ten runs are opened in a browser: ``python -m
tests.deployments.viewer``, as root.

All that it takes counts: its own memory, and the files of libraries that it has read, of which the system drops what is
not used. Exits with 1 where the kernel has ended it, or a page shows no run.
"""

import argparse
import multiprocessing
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from tests.browser import ROOT, TRACEBACK, AppServer, launch, wait_idle
from tests.memory_group import group_of

RUNS = 10
_MIB = 190  # 200 MB


def keep(home: Path) -> list[str]:
    """Ten runs of all kinds; their ids."""
    # In this process alone: what another one has loaded of a library counts for that one.
    from msgspec.structs import replace

    from measure.model.run_file import decode
    from measure.store.store import Store
    from tests import synthetic

    files = ("views/example_run.json", "views/example_claims.json", "tests/data/map_1.json", "tests/data/sweep_1.json")
    runs = [decode((ROOT / name).read_bytes()) for name in files]
    runs += [synthetic.run() for seed in range(RUNS - len(runs))]
    kept = Store(home)
    ids = [f"{number:024x}" for number in range(len(runs))]
    for run_id, run in zip(ids, runs, strict=True):
        kept.add(replace(run, id=run_id), "")
    kept.close()
    return ids


def resident(pid: int) -> dict[str, float]:
    """Resident memory in megabytes: in all, its own, and that of files."""
    lines = (line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    named = ("VmRSS:", "RssAnon:", "RssFile:")
    return {words[0][:-1]: int(words[1]) * 1024 / 1e6 for words in lines if words[0] in named}


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory(prefix="mapbench-viewer-") as name, ExitStack() as stack:
        home = Path(name, "home")
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as other:
            ids = other.submit(keep, home).result()
        group = stack.enter_context(group_of(_MIB))
        if group is None:
            print("no memory cgroup can be made here")
            return 1
        Path("/proc/sys/vm/drop_caches").write_text("1")  # so that files of libraries are read anew, for the viewer
        server = AppServer.start(ROOT / "app.py", home, {"MAPBENCH_VIEWER": "1"}, before=group.enter)
        stack.callback(server.stop)
        with sync_playwright() as playwright:
            browser = launch(playwright)
            page = browser.new_page()
            for run_id in ids:
                page.goto(f"{server.url}/?run={run_id}")
                wait_idle(page)
                expect(page.get_by_role("heading", level=1)).to_be_visible()
            browser.close()
        if TRACEBACK in server.log() or server.children() or server.process.poll() is not None:
            raise RuntimeError(server.log())
        figures, (most, counted) = resident(server.process.pid), group.figures()
        print(f"{len(ids)} runs were opened in a group of {_MIB} MiB: at most {most / 1e6:.0f} MB, with the files of")
        print(f"libraries that were read; the kernel counts {counted} failures to get more before some were dropped")
        print(f"resident in the end: {figures['VmRSS']:.0f} MB, of which its own {figures['RssAnon']:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
