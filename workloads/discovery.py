"""Finds what a file offers under one module-level name: in a package, and in folders of a person's own.

Workloads and mappers are both found this way, so that adding one file is all that adding one takes. A person's own
files are executed by who measures, as a test runner does with its plug-ins: the worker, the command line, Python. The
worker describes them, and the process of the pages, which may hang or end with no file, takes that in their place.
"""

import functools
import importlib
import inspect
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
from typing import Any, Generic, Protocol, TypeVar

from workloads import descriptions, places


class _Named(Protocol):
    @property
    def slug(self) -> str: ...


T = TypeVar("T", bound=_Named)

_SLUG = re.compile(r"[a-z][a-z0-9_]*")
_ADDRESS = re.compile(r"(?:(?: at)? )?\b0x[0-9a-fA-F]{8,16}\b")


def without_addresses(text: str) -> str:
    """Return a text without addresses in memory, which say nothing to anybody: ``<function f>``."""
    return _ADDRESS.sub("", text)


class DiscoveryError(ValueError):
    """A file does not offer what it should: the message names the file and what was wrong with it."""

    def __init__(self, message: str) -> None:
        super().__init__(without_addresses(message))


def check_slug(slug: Any, what: str = "slug") -> None:
    """Raise ValueError with a sentence where a name could not stand in a link or on a command line."""
    if not isinstance(slug, str) or not _SLUG.fullmatch(slug):
        raise ValueError(f"{what} {slug!r} is not valid: small letters, digits and _ are, beginning with a letter")


def check_sourced(function: Callable[..., Any]) -> None:
    """Raise ValueError with a sentence where a function's source could not be put into a script."""
    if not inspect.isfunction(function) or function.__name__ == "<lambda>" or function.__closure__:
        raise ValueError(f"{function!r} cannot be put into a script: a top-level 'def' can")


@dataclass(frozen=True, eq=False)
class Offers(Generic[T]):
    """All that the package and files of a person's own offer.

    ``items`` are by slug. Of the files, by path, ``broken`` has the sentence that says what is wrong with one, and
    ``slugs`` what each of the others offers.
    """

    items: Mapping[str, T]
    broken: Mapping[str, str]
    slugs: Mapping[str, str]

    @functools.cached_property
    def described(self) -> Mapping[str, Any]:
        """Path of a file → what it offers as data, or what is wrong with it."""
        described: dict[str, Any] = dict(self.broken)
        for path, slug in self.slugs.items():
            try:
                described[path] = descriptions.described(self.items[slug])
            except Exception as error:  # whatever somebody else's file may raise
                described[path] = f"{path} cannot be described: {type(error).__name__}: {error}"
        return described


class Discovery(Generic[T]):
    """Finds what the modules of ``package``, and files of a person's own, offer under the name ``attribute``.

    Those files are in the folder ``own_folder`` of `places.home`, and in the folders, or are the single files, that the
    environment variable ``variable`` holds, joined by ``os.pathsep``. They are executed again when one has changed. A
    fault in the package is raised; an error in one of those files is kept as the sentence that says what is wrong, and
    costs only that file. What the package offers comes first, in ``order`` and then by name. Safe to use from several
    threads.
    """

    def __init__(
        self,
        package: str,
        attribute: str,
        kind: type[T],
        variable: str,
        own_folder: str,
        check: Callable[[T], None],
        order: Callable[[T], Any] = lambda item: 0,
    ):
        self.attribute = attribute
        self._order, self._package, self._kind = order, package, kind
        self._variable, self._own_folder, self._check = variable, own_folder, check
        self._lock = threading.RLock()
        self._package_items: dict[str, T] | None = None
        self._versions: dict[str, Any] = {}  # of the files when they were executed
        self._offers: Offers[T] | None = None
        # What another process has described, and what is offered of it: then no file is executed here.
        self._described: tuple[Any, Offers[T]] | None = None
        discoveries.append(self)

    def find(self) -> Offers[T]:
        """Return all that there is now; the same object as long as nothing has changed."""
        with self._lock:
            if self._described is not None:
                return self._described[1]
            versions = self._versions_now()
            if self._offers is None or versions != self._versions:
                self._versions, self._offers = versions, self._all({path: self._read(path) for path in versions})
            return self._offers

    def has_changed(self) -> bool:
        """True if files are to be executed, or are gone."""
        return self._versions_now() != self._versions

    def take(self, described: Mapping[str, Any]) -> None:
        """Offer from now on what another process has described, and execute no file."""
        with self._lock:
            if self._described is None or described != self._described[0]:
                files = {
                    path: data if isinstance(data, str) else descriptions.of_data(data, self._kind)
                    for path, data in described.items()
                }
                self._described = described, self._all(files)

    def slug_in(self, path: str | Path) -> str:
        """Return the slug of what a file of a person's own offers; `DiscoveryError` with a sentence otherwise."""
        if places.hosted():
            raise DiscoveryError(f"{path} is not read: MAPBENCH_HOSTED is set, so files of one's own are off")
        offers = self.find()
        path = os.path.abspath(path)
        if path in offers.broken:
            raise DiscoveryError(offers.broken[path])
        return offers.slugs[path]

    def load_file(self, path: str | Path) -> T:
        """Execute one file, and return what it offers; `DiscoveryError` with a sentence otherwise."""
        path = Path(path).resolve()
        linecache.checkcache(str(path))  # an edited file must not be shown with its former source
        module = sys.modules[str(path)] = ModuleType(str(path))
        module.__file__ = str(path)
        try:
            # Compiled from the text, not imported: a cached .pyc may be older than an edit made within one second.
            exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
            return self._checked(getattr(module, self.attribute, None), str(path))
        except DiscoveryError:
            raise
        except (Exception, SystemExit) as error:  # whatever somebody else's file may raise
            lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
            where = f" (line {lines[-1]})" if lines else ""
            raise DiscoveryError(f"{path} cannot be loaded: {type(error).__name__}: {error}{where}") from error

    def _of_package(self) -> dict[str, T]:
        if self._package_items is None:
            items: dict[str, T] = {}
            for info in pkgutil.iter_modules(sys.modules[self._package].__path__):
                module = importlib.import_module(f"{self._package}.{info.name}")
                offered = getattr(module, self.attribute, ())
                for one in offered if isinstance(offered, tuple) else (offered,):
                    item = self._checked(one, module.__name__)
                    if item.slug in items:
                        raise DiscoveryError(f"{module.__name__}: slug {item.slug!r} is taken already: choose another")
                    items[item.slug] = item
            self._package_items = dict(sorted(items.items(), key=lambda item: self._order(item[1])))
        return self._package_items

    def _checked(self, item: Any, where: str) -> T:
        if not isinstance(item, self._kind):
            raise DiscoveryError(
                f"{where} offers {type(item).__name__} as {self.attribute}: a {self._kind.__name__} is needed"
            )
        try:
            self._check(item)
        except (TypeError, ValueError) as error:
            raise DiscoveryError(f"{where}: {error}") from error
        return item

    def _versions_now(self) -> dict[str, Any]:
        """Return the time of the last change and the size of each file of a person's own; None of one that is not
        there."""
        versions: dict[str, Any] = {}
        named = list(filter(None, os.environ.get(self._variable, "").split(os.pathsep)))
        for place in () if places.hosted() else (*named, os.path.join(places.home(), self._own_folder)):
            place = os.path.abspath(place)
            try:
                paths = [os.path.join(place, name) for name in sorted(os.listdir(place)) if name.endswith(".py")]
            except OSError:  # a file, or nothing, which only matters where somebody has named it
                paths = [place] if place in map(os.path.abspath, named) else []
            for path in paths:
                try:
                    status = os.stat(path)
                    versions[path] = (status.st_mtime_ns, status.st_size)
                except OSError:
                    versions[path] = None
        return versions

    def _read(self, path: str) -> T | str:
        try:
            return self.load_file(path)
        except DiscoveryError as error:
            return str(error)

    def _all(self, files: Mapping[str, T | str]) -> Offers[T]:
        items, broken, slugs = dict(self._of_package()), {}, {}
        for path, item in files.items():
            if isinstance(item, str):
                broken[path] = item
            elif item.slug in items:
                broken[path] = f"{path}: slug {item.slug!r} is taken already: choose another"
            else:
                items[item.slug] = item
                slugs[path] = item.slug
        return Offers(items, broken, slugs)


discoveries: list[Discovery[Any]] = []


def have_changed() -> bool:
    """True if files of a person's own are to be executed, or are gone."""
    return any(one.has_changed() for one in discoveries)


def describe() -> dict[str, Mapping[str, Any]]:
    """Return what files of a person's own offer, which are executed where they have changed, as data."""
    return {one.attribute: one.find().described for one in discoveries}


def take(described: Mapping[str, Mapping[str, Any]]) -> None:
    """Offer from now on what another process has described, and execute no file of a person's own here."""
    for one in discoveries:
        one.take(described.get(one.attribute, {}))
