"""The way to the database: opened when it is first used, its faults said in sentences, and nobody waits without end."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator

import sqlalchemy as sa

from measure.model.place import StoreError
from measure.store import database, url

log = logging.getLogger("mapbench.store")


class Access:
    """One database, for any thread."""

    def __init__(self, address: sa.URL, on_opened: Callable[[], object]) -> None:
        """``on_opened``: called when it has been opened."""
        self._url = address
        self._on_opened = on_opened
        self._opening = threading.RLock()
        self._engine: sa.Engine | None = None
        self._file = database.file_of(address)
        self._opened_file: tuple[int, int] | None = None

    @contextlib.contextmanager
    def faults(self) -> Iterator[None]:
        """Say what goes wrong with the database in a sentence: as `StoreError`."""
        try:
            yield
        except (sa.exc.SQLAlchemyError, OSError, ImportError) as error:
            said = str(getattr(error, "orig", None) or getattr(error, "strerror", None) or error)
            reason = url.without_secrets(said, self._url)
            log.warning("%s: %s", self._url.get_backend_name(), reason)
            raise StoreError(reason) from None  # the driver's own exception may quote the password

    @contextlib.contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that reads."""
        with self.faults(), self._opened().connect() as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self, patience_s: float = database.WRITING_S) -> Iterator[sa.Connection]:
        """A transaction that writes, whole or not at all, when no other does. ``patience_s``: how long it waits."""
        with self.faults(), database.for_writing(self._opened(), patience_s).begin() as connection:
            yield connection

    def give_back(self) -> None:
        """Give the room of what was deleted back to the disk."""
        with self.faults():
            database.give_back(self._opened())

    def close(self) -> None:
        """Let go of the database; the next use opens it again."""
        with self._opening:
            if self._engine is not None:
                self._engine.dispose()
                self._engine = None

    def _opened(self) -> sa.Engine:
        # Who has a file open that was deleted would go on writing into it, and nobody else would see that.
        if (engine := self._engine) is not None and self._opened_file == self._file_now():
            return engine
        if not self._opening.acquire(timeout=database.READING_S):
            raise StoreError("it is being opened: try again in a moment")
        try:
            if self._opened_file != self._file_now():
                self.close()
            if self._engine is None:
                try:
                    self._engine = database.connect(self._url)
                except (ValueError, TypeError) as error:  # of a driver too, which does not know an option
                    raise StoreError(url.without_secrets(str(error), self._url)) from None
                self._opened_file = self._file_now()
                self._on_opened()
            return self._engine
        finally:
            self._opening.release()

    def _file_now(self) -> tuple[int, int] | None:
        """The file that lies where the database is, as its device and number; None where there is none."""
        try:
            state = self._file.stat() if self._file is not None else None
        except OSError:
            return None
        return (state.st_dev, state.st_ino) if state is not None else None
