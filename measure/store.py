"""Runs on disk: one JSON file each, replaced whole, so that a reader never sees half of one."""

import os
import re
import secrets
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from measure.run import Run, decode, encode
from workloads.places import home

_ID = re.compile(r"[0-9a-f]{24}")


def new_id() -> str:
    """An id that cannot be guessed: 96 random bits in hexadecimal."""
    return secrets.token_hex(12)


def is_id(text: str) -> bool:
    return bool(_ID.fullmatch(text))


class Store:
    """The runs in a folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or home() / "runs"
        # A page asks for the run that it shows at every interaction.
        self._decode = lru_cache(maxsize=8)(self._decode_version)

    def save(self, run: Run) -> None:
        """Write the run whole or not at all. Raises OSError, with the former file left as it was."""
        self.folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=self.folder, prefix=f".{run.id}-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(encode(run))
            os.replace(temporary, self._path(run.id))
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise

    def load(self, run_id: str) -> Run | None:
        """The run, or None where there is none of that id. Raises ValueError where its file is damaged."""
        if not is_id(run_id):
            return None
        try:
            status = self._path(run_id).stat()
            return self._decode(run_id, (status.st_ino, status.st_mtime_ns, status.st_size))
        except OSError:
            return None

    def _decode_version(self, run_id: str, version: tuple[int, int, int]) -> Run:
        return decode(self._path(run_id).read_bytes())

    def ids(self) -> list[str]:
        """Ids of all runs, the newest first."""
        try:
            files = [path for path in self.folder.iterdir() if path.suffix == ".json" and is_id(path.stem)]
        except OSError:
            return []
        return [path.stem for path in sorted(files, key=lambda path: path.stat().st_mtime, reverse=True)]

    def _path(self, run_id: str) -> Path:
        return self.folder / f"{run_id}.json"
