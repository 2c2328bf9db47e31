"""Finds what a file offers under one module-level name: in a package, and in folders that a variable names.

Workloads and mappers are both found this way, so that adding one file is all that adding one takes.
"""

import hashlib
import importlib
import importlib.util
import inspect
import linecache
import os
import pkgutil
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, Protocol, TypeVar


class _Named(Protocol):
    @property
    def slug(self) -> str: ...


T = TypeVar("T", bound=_Named)

_SLUG = re.compile(r"[a-z][a-z0-9_]*")


class DiscoveryError(ValueError):
    """A file does not offer what it should: the message names the file and what was wrong with it."""


def check_slug(slug: str) -> None:
    """ValueError with a sentence where a slug could not stand in a link or on a command line."""
    if not _SLUG.fullmatch(slug):
        raise ValueError(f"slug {slug!r} is not valid: small letters, digits and _ are, beginning with a letter")


def check_sourced(function: Callable[..., Any]) -> None:
    """ValueError with a sentence where a function's source could not be put into a script."""
    if not inspect.isfunction(function) or function.__name__ == "<lambda>" or "<locals>" in function.__qualname__:
        raise ValueError(f"{function!r} cannot be put into a script: a top-level 'def' can")


class Discovery(Generic[T]):
    """What the modules of ``package`` offer under the name ``attribute``, and the files that ``variable`` names.

    The environment variable holds folders, or single files, joined by ``os.pathsep``. It is read at every call, and a
    file is loaded again when it has changed. A fault in the package is raised; a fault in one of those files is kept in
    ``broken`` and costs only that file. What the package offers comes first, in ``order`` and then by name. Safe to use
    from several threads.
    """

    def __init__(
        self,
        package: str,
        attribute: str,
        kind: type[T],
        variable: str,
        check: Callable[[T], None],
        order: Callable[[T], Any] = lambda item: 0,
    ):
        self._order = order
        self._package, self._attribute, self._kind = package, attribute, kind
        self._variable, self._check = variable, check
        self._lock = threading.RLock()
        self._own: dict[str, T] | None = None
        self._loaded: dict[Path, tuple[tuple[int, int], T | str]] = {}

    def find(self) -> tuple[dict[str, T], dict[str, str]]:
        """(slug → what was found, path → message for each file that is broken)."""
        with self._lock:
            found = dict(self._package_items())
            broken = {}
            for path in self._files():
                item = self._load_cached(path)
                if isinstance(item, str):
                    broken[str(path)] = item
                elif item.slug in found:
                    broken[str(path)] = f"{path}: slug {item.slug!r} is taken already: choose another"
                else:
                    found[item.slug] = item
            return found, broken

    def load_file(self, path: str | Path) -> T:
        """What one file offers; `DiscoveryError` with a sentence otherwise."""
        path = Path(path).resolve()
        name = f"mapbench_{self._attribute.lower()}_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
        linecache.checkcache(str(path))  # an edited file must not be shown with its former source
        spec = importlib.util.spec_from_file_location(name, path)
        if not path.is_file() or spec is None or spec.loader is None:
            raise DiscoveryError(f"{path} is not a Python file: a file whose name ends in .py is needed")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            # Compiled from the text, not imported: a cached .pyc may be older than an edit made within one second.
            exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
            return self._item(module, str(path))
        except DiscoveryError:
            del sys.modules[name]
            raise
        except (Exception, SystemExit) as error:  # whatever somebody else's file may raise
            del sys.modules[name]
            raise DiscoveryError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error

    def _package_items(self) -> dict[str, T]:
        if self._own is None:
            items: dict[str, T] = {}
            for info in pkgutil.iter_modules(sys.modules[self._package].__path__):
                module = importlib.import_module(f"{self._package}.{info.name}")
                if hasattr(module, self._attribute):
                    item = self._item(module, module.__name__)
                    if item.slug in items:
                        raise DiscoveryError(f"{module.__name__}: slug {item.slug!r} is taken already: choose another")
                    items[item.slug] = item
            self._own = dict(sorted(items.items(), key=lambda item: self._order(item[1])))
        return self._own

    def _item(self, module: ModuleType, where: str) -> T:
        item = getattr(module, self._attribute, None)
        if not isinstance(item, self._kind):
            raise DiscoveryError(
                f"{where} offers {type(item).__name__} as {self._attribute}: a {self._kind.__name__} is needed"
            )
        try:
            self._check(item)
        except (TypeError, ValueError) as error:
            raise DiscoveryError(f"{where}: {error}") from error
        return item

    def _files(self) -> list[Path]:
        files: list[Path] = []
        for entry in os.environ.get(self._variable, "").split(os.pathsep):
            if entry:
                path = Path(entry).resolve()
                files += sorted(path.glob("*.py")) if path.is_dir() else [path]
        return list(dict.fromkeys(files))

    def _load_cached(self, path: Path) -> T | str:
        try:
            status = path.stat()
        except OSError as error:
            return f"{path} cannot be read: {error.strerror}"
        version = (status.st_mtime_ns, status.st_size)
        cached = self._loaded.get(path)
        if cached is None or cached[0] != version:
            try:
                item: T | str = self.load_file(path)
            except DiscoveryError as error:
                item = str(error)
            cached = self._loaded[path] = (version, item)
        return cached[1]
