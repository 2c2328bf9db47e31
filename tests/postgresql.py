"""A PostgreSQL server of one's own, for tests and benchmarks."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa

# Debian has the programs of each version in a folder of its own.
_FOLDERS = [*sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")), reverse=True), os.environ.get("PATH", "")]
PG_CTL = shutil.which("pg_ctl", path=os.pathsep.join(_FOLDERS))


class Server:
    """A server in a folder of its own, in which is the socket that leads to it; it runs as another user than root."""

    def __init__(self, folder: str) -> None:
        self._folder, self._as = folder, {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
        if self._as:
            shutil.chown(folder, **self._as)
        self._control("init", "-o", "-A trust -U mapbench -E UTF8 --no-locale --no-sync")
        self.url = sa.make_url(f"postgresql+psycopg://mapbench@/postgres?host={folder}")
        self.start()

    def start(self) -> None:
        settings = (f"unix_socket_directories={self._folder}", "listen_addresses=", "fsync=off", "full_page_writes=off")
        self._control("start", "-l", f"{self._folder}/log", "-o", " ".join(f"-c {setting}" for setting in settings))

    def stop(self) -> None:
        self._control("stop", "-m", "fast")

    def execute(self, *statements: str) -> None:
        with sa.create_engine(self.url, poolclass=sa.NullPool).begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def _control(self, order: str, *options: str) -> None:
        assert PG_CTL is not None, "no PostgreSQL server is installed"
        command = [PG_CTL, order, "-w", "-s", "-D", f"{self._folder}/data", *options]
        subprocess.run(command, cwd=self._folder, check=True, stdout=subprocess.DEVNULL, **self._as)


@contextlib.contextmanager
def running() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="mapbench-postgresql-") as folder:
        server = Server(folder)
        try:
            yield server
        finally:
            server.stop()
