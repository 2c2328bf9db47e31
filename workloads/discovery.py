"""Finds what files offer under one module-level name: those of a package, and those of a person's own.

A person's own files are executed by who measures, as a test runner does with its plug-ins: the worker, the command
line, Python. The worker describes them, and the process of the pages, which may hang or end with no file, takes that
in their place.
"""

import functools
import importlib
import linecache
import os
import pkgutil
import re
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from workloads import places

T = TypeVar("T", bound=Any)  # has a slug

_SLUG = re.compile(r"[a-z][a-z0-9_]*")
_ADDRESS = re.compile(r"(?:(?: at)? )?\b0x[0-9a-fA-F]{8,16}\b")


def without_addresses(text: str) -> str:
    """Return a text without addresses in memory, which say nothing to anybody: ``<function f>``."""
    return _ADDRESS.sub("", text)


class DiscoveryError(ValueError):
    """A file does not offer what it should, or nothing has this name: the message says what is wrong."""

    def __init__(self, message: str) -> None:
        super().__init__(without_addresses(message))


def check_slug(slug: Any, what: str = "slug") -> None:
    """Raise ValueError with a sentence where a name could not stand in a link or on a command line."""
    if not isinstance(slug, str) or not _SLUG.fullmatch(slug):
        raise ValueError(f"{what} {slug!r} is not valid: small letters, digits and _ are, beginning with a letter")


@dataclass(frozen=True, eq=False)
class Offers(Generic[T]):
    """All that there is, by slug: of the package, then of a person's own files. ``files``: by path what each of these
    offers, or the sentence that says what is wrong with it."""

    items: Mapping[str, T]
    files: Mapping[str, T | str]

    @property
    def broken(self) -> dict[str, str]:
        return {path: offered for path, offered in self.files.items() if isinstance(offered, str)}


@dataclass(eq=False)
class Discovery(Generic[T]):
    """Finds what the modules of ``package``, and files of a person's own, offer under the name ``attribute``. Those
    files are in the folder ``own_folder`` of `places.home`, and in the folders, or are the single files, that the
    environment variable ``variable`` holds, joined by ``os.pathsep``. Each has to pass ``check``, and all are executed
    again when one has changed; an error in one costs only that file. What the package offers comes first, in ``order``
    and then by name. Safe to use from several threads."""

    package: str
    attribute: str
    kind: type[T]
    variable: str
    own_folder: str
    check: Callable[[T], None]
    order: Callable[[T], Any] = lambda item: 0

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        self._versions: dict[str, Any] = {}  # of the files when they were executed
        self._offers: Offers[T] | None = None
        self._is_described = False
        discoveries.append(self)

    def find(self) -> Offers[T]:
        """Return all that there is now; the same object as long as nothing has changed."""
        with self._lock:
            if self._offers is None or (not self._is_described and self.has_changed()):
                self._versions = self._versions_now()
                self._offers = self._all({path: self._read(path) for path in self._versions})
            return self._offers

    def has_changed(self) -> bool:
        return self._versions_now() != self._versions

    def take(self, files: Mapping[str, T | str]) -> None:
        """Offer from now on what another process has found in files, and execute none here."""
        self._offers, self._is_described = self._all(files), True

    def slug_in(self, path: str | Path) -> str:
        """Return the slug of what a file of a person's own offers; `DiscoveryError` with a sentence otherwise."""
        if places.hosted():
            raise DiscoveryError(f"{path} is not read: MAPBENCH_HOSTED is set, so files of one's own are off")
        offered = self.find().files[os.path.abspath(path)]
        if isinstance(offered, str):
            raise DiscoveryError(offered)
        return str(offered.slug)

    def load_file(self, path: str | Path) -> T:
        """Execute one file, and return what it offers; `DiscoveryError` with a sentence otherwise."""
        path = Path(path).resolve()
        linecache.checkcache(str(path))  # an edited file must not be shown with its former source
        module = sys.modules[str(path)] = ModuleType(str(path))
        module.__file__ = str(path)
        try:
            # Compiled from the text, not imported: a cached .pyc may be older than an edit made within one second.
            exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
        except (Exception, SystemExit) as error:  # whatever somebody else's file may raise
            lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
            where = f" (line {lines[-1]})" if lines else ""
            raise DiscoveryError(f"{path} cannot be loaded: {type(error).__name__}: {error}{where}") from error
        item = getattr(module, self.attribute, None)
        if not isinstance(item, self.kind):
            offered, needed = type(item).__name__, self.kind.__name__
            raise DiscoveryError(f"{path} offers {offered} as {self.attribute}: a {needed} is needed")
        try:
            self.check(item)
        except Exception as error:
            what = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            raise DiscoveryError(f"{path}: {what}") from error
        return item

    def _read(self, path: str) -> T | str:
        try:
            return self.load_file(path)
        except DiscoveryError as error:
            return str(error)

    def _all(self, files: Mapping[str, T | str]) -> Offers[T]:
        items, checked = dict(self._of_package), dict(files)
        for path, offered in files.items():
            if not isinstance(offered, str) and items.setdefault(offered.slug, offered) is not offered:
                checked[path] = f"{path}: slug {offered.slug!r} is taken already: choose another"
        return Offers(items, checked)

    @functools.cached_property
    def _of_package(self) -> dict[str, T]:
        items: list[T] = []
        for info in pkgutil.iter_modules(sys.modules[self.package].__path__):
            offered = getattr(importlib.import_module(f"{self.package}.{info.name}"), self.attribute, ())
            items += offered if isinstance(offered, tuple) else [offered]
        return {item.slug: item for item in sorted(items, key=self.order)}

    def _versions_now(self) -> dict[str, Any]:
        """Return the time of the last change and the size of each file of a person's own; None of one that is named and
        not there."""
        named = list(filter(None, os.environ.get(self.variable, "").split(os.pathsep)))
        versions: dict[str, Any] = {}
        for place in () if places.hosted() else (*named, str(places.home() / self.own_folder)):
            try:
                paths = [os.path.join(place, name) for name in sorted(os.listdir(place)) if name.endswith(".py")]
            except OSError:  # a file, or nothing, which only matters where somebody has named it
                paths = [place] if place in named else []
            for path in map(os.path.abspath, paths):
                try:
                    status = os.stat(path)
                    versions[path] = (status.st_mtime_ns, status.st_size)
                except OSError:
                    versions[path] = None
        return versions


discoveries: list[Discovery[Any]] = []
