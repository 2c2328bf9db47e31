"""The default comparisons of the first three workloads on a hosted server in 2 GB of memory.

``python -m tests.benchmarks.small_machine``, as root, on Linux; a minute.

This process, the server, its worker and all that they start live in a control group with that limit. A line says how
a comparison ended and how large the archive of its figures is; the last one, what processes of the group held at most,
and how many the kernel has ended.
"""

import argparse
import os
import tempfile
import urllib.request
from pathlib import Path

import workloads
from measure.client import Client
from measure.run.request import parse
from measure.store.store import Store
from tests.benchmarks import common
from tests.browser import AppServer

LIMIT_BYTES = 2_000_000_000
# As docs/hosting.md has it for such a machine.
SETTINGS = {"MAPBENCH_HOSTED": "1", "MAPBENCH_MEMORY_MIB": "512", "MAPBENCH_STORE_MIB": "512"}
GROUPS = Path("/sys/fs/cgroup")
# By the version of groups: where one is made, the file with its limit, and where it counts what is held and who was
# ended.
OLD = (GROUPS / "memory", "memory.limit_in_bytes", ("memory.stat", "total_rss"), ("memory.oom_control", "oom_kill"))
NEW = (GROUPS, "memory.max", ("memory.stat", "anon"), ("memory.events", "oom_kill"))


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    above, limit, held, ended = OLD if OLD[0].is_dir() else NEW
    group = above / f"mapbench-{os.getpid()}"

    def count(file: str, name: str) -> int:
        return int(dict(line.split() for line in (group / file).read_text().splitlines())[name])

    common.start("Default comparisons in 2 GB")
    group.mkdir()
    (group / limit).write_text(str(LIMIT_BYTES))
    (group / "cgroup.procs").write_text(str(os.getpid()))  # and with it all that it starts
    with tempfile.TemporaryDirectory(prefix="mapbench-small-") as folder:
        os.environ |= SETTINGS | {"MAPBENCH_LOCK": f"{folder}/lock", "TMPDIR": folder}
        server = AppServer.start(common.ROOT / "app.py", Path(folder, "home"))
        client, most = Client(Store(server.home)), 0
        for workload in workloads.all()[:3]:
            run_id = client.submit(parse({"workload": workload.slug}))
            while not client.wait(run_id, 0.1):
                most = max(most, count(*held))
            run = client.store.load(run_id)
            figures = urllib.request.urlopen(f"{server.url}/export/{run_id}/figures.zip").read()
            print(f"{workload.slug}: {run.status}, {run.verdict}; {len(figures):,} bytes", flush=True)
        print(f"{most / 2**20:,.0f} MiB held at most, {count(*ended)} processes ended by the kernel")
        server.stop()
    (above / "cgroup.procs").write_text(str(os.getpid()))
    group.rmdir()


if __name__ == "__main__":
    main()
