"""Fixtures of all tests: a folder for runs, a server with the app, a browser."""

import gc
import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from streamlit.components.v2.component_manager import BidiComponentManager
from xdist.scheduler import LoadFileScheduling

from measure.engine.host_launcher import HostLauncher
from measure.store.store import Store
from tests.browser import ROOT, TRACEBACK, AppServer, Watch, launched, open_tab
from tests.engine import eventually, running_host
from tests.steps import going_on
from workloads import functions

# Its tests have nothing in common but a host, and go one by one to whoever is free.
_FREE = "tests/workloads/test_grid.py"
# Its files have a browser and servers in common, and go to one process.
_TOGETHER = "tests/views/browser"

_skipped: list[str] = []


class _FilesAndFreeTests(LoadFileScheduling):
    """Gives whole files to a process, for the sake of their fixtures, and free tests one by one."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if nodeid.startswith(_FREE) else _group(nodeid)


def _group(nodeid: str) -> str:
    """What a test shares its fixtures with: its file, or its folder."""
    return _TOGETHER if nodeid.startswith(f"{_TOGETHER}/") else nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    return _FilesAndFreeTests(config, log) if config.getoption("dist") == "loadfile" else None


def _nothing_may_be_skipped() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Files with many slow tests go first; the free tests at the end fill up what the files leave.
    slow = Counter(_group(item.nodeid) for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: (item.nodeid.startswith(_FREE), -slow[_group(item.nodeid)], _group(item.nodeid)))


def pytest_collection_finish(session: pytest.Session) -> None:
    # All that was imported lives to the end: a collection of garbage, of which tests and what they test ask for many,
    # need not look at it again.
    gc.freeze()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        _skipped.append(report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.skipped:
        _skipped.append(report.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if _skipped and _nothing_may_be_skipped():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _skipped and _nothing_may_be_skipped():
        terminalreporter.section("skipped while CI is set: a failure", red=True)
        for nodeid in _skipped:
            terminalreporter.line(nodeid)


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs and the machine's measurement lock are in temporary folders, never in the user's home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAPBENCH_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("MAPBENCH_LOCK", str(tmp_path_factory.mktemp("lock") / "measure.lock"))
        yield


@pytest.fixture(scope="module", autouse=True)
def _functions_of_a_file() -> Iterator[None]:
    """Functions that a file of tests gives are no workloads of the next one."""
    with pytest.MonkeyPatch.context() as patch:
        for known in ("_known", "_workloads"):
            patch.setattr(functions, known, {})
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_components_of_other_packages() -> Iterator[None]:
    """An `AppTest` looks for components in the metadata of all packages that are installed: 0.2 s each, and none is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BidiComponentManager, "discover_and_register_components", lambda *_, **__: None)
        yield


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostLauncher]:
    """A host for all tests that only need one, forked from the nursery: TensorFlow is imported once for them.

    A test that has asked for a subject waits for its end, and one that kills or closes a host has its own.
    """
    with running_host(tmp_path_factory.mktemp("host"), warm=True) as launcher:
        yield launcher


@pytest.fixture(scope="session")
def start_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., AppServer]]:
    """``start_app(module="streamlit", **env)`` starts a server of the app that lives to the end of the tests.

    Nothing may outlive a server, and its log may hold no traceback.
    """
    servers: list[AppServer] = []

    def start(module: str = "streamlit", **env: str) -> AppServer:
        home = tmp_path_factory.mktemp("server") / "home"
        servers.append(AppServer.start(ROOT / "app.py", home, env, module=module))
        return servers[-1]

    yield start
    problems = []
    for server in servers:
        problems += [f"outlived its server: {command}" for command in server.stop()]
        log = server.new_log()
        if TRACEBACK in log:
            problems.append(f"traceback in the server's log:\n{log}")
    assert not problems, "\n".join(problems)


@pytest.fixture(scope="session")
def _shared_server(start_app: Callable[..., AppServer]) -> AppServer:
    return start_app("tests.simulated_server")


@pytest.fixture
def app_server(_shared_server: AppServer) -> Iterator[AppServer]:
    """The app on simulated subjects, for all tests that only need a server; its log may hold no traceback after any of
    them.

    A test leaves nothing that is measured, also where it fails; it may find runs that others have left.
    """
    _shared_server.new_log()
    yield _shared_server
    kept = Store(_shared_server.home)
    with going_on(_shared_server):
        eventually(lambda: not any(kept.look(run_id).live for run_id in kept.ids()), "nothing is measured")
    log = _shared_server.new_log()
    assert TRACEBACK not in log, f"traceback in the server's log:\n{log}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for a file of tests: as long as Playwright runs, so does an event loop in this thread, in which
    `asyncio.run` of other files would fail."""
    with launched() as chromium:
        yield chromium


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Gathers the errors of a test's pages and asserts at its end that there were none."""
    watch = Watch()
    yield watch
    assert not watch.problems, "\n".join(watch.problems)


@pytest.fixture
def new_page(browser: Browser, watch: Watch) -> Iterator[Callable[..., Page]]:
    """``new_page(width=1280, height=800, color_scheme="light")`` opens a page.

    All pages are of one context: scripts that one page has compiled, the next one takes from the cache. Each is a
    session of its own all the same.
    """
    pages = []

    def open_page(width: int = 1280, height: int = 800, color_scheme: str = "light") -> Page:
        pages.append(open_tab(browser, watch, width, height, color_scheme))
        return pages[-1]

    yield open_page
    for page in pages:
        page.close()


@pytest.fixture
def page(new_page: Callable[..., Page]) -> Page:
    return new_page()
