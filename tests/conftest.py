"""Fixtures of all tests: a folder for runs, a server with the app, a browser."""

import asyncio
import functools
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from streamlit.components.v2.component_manager import BidiComponentManager
from streamlit.runtime.context import ContextProxy

from measure.pool.launcher import Launcher
from measure.store.store import Store
from tests.browser import ROOT, TRACEBACK, AppServer, Watch, launch
from tests.deadlines import ANSWER_S
from tests.engine import eventually, running_host
from tests.keeping import ids
from tests.subjects import GO_ON
from views.ui import permission
from workloads import descriptions, discovery, functions

# A test that uses one of these, directly or through another fixture, is live: it starts processes, drives a browser, or
# calls TensorFlow; or names one as a parameter. All others are deterministic.
LIVE = {"live", "tf", "host", "start_app", "browser", "postgresql"}

_is_running = False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=("deterministic", "live"), help="only the tests of this tier")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("tier") == "deterministic":
        sys.addaudithook(_refuse_what_is_real)


def _refuse_what_is_real(event: str, arguments: tuple[Any, ...]) -> None:
    if _is_running and (
        event in ("subprocess.Popen", "os.fork", "os.posix_spawn")
        or (event == "import" and arguments[0] == "tensorflow")
    ):
        raise RuntimeError(f"{event} {arguments[:1]} in a deterministic test: give it a fixture that makes it live")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tier = config.getoption("tier")
    of_tier = [item for item in items if tier in (None, "live" if LIVE & _names(item) else "deterministic")]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(of_tier)])
    items[:] = of_tier


def _names(item: Any) -> set[str]:
    """The fixtures of a test, and what it is given as parameters by a name."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return {*item.fixturenames, *(value for value in parameters if isinstance(value, str))}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    global _is_running
    _is_running = True
    try:
        return (yield)
    finally:
        _is_running = False


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A skipped test is a failure where CI is set."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and reporter.stats.get("skipped") and os.environ.get("CI"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def live() -> None:
    """Marks a test that starts processes by itself as live."""


@pytest.fixture(scope="session")
def tf() -> Any:
    """TensorFlow, in the tests' own process."""
    import tensorflow

    return tensorflow


@pytest.fixture(autouse=True)
def _own_workloads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a person's own are executed, until a page of the test takes those of its worker; and functions that a
    test gives are no workloads of the next one."""
    monkeypatch.setattr(descriptions, "_latest", None)
    for one in discovery.discoveries:
        for name, value in (("_is_described", False), ("_offers", None), ("_versions", {})):
            monkeypatch.setattr(one, name, value)
    for by_slug in ("_derived", "_workloads"):
        monkeypatch.setattr(functions, by_slug, {})


@pytest.fixture(scope="session", autouse=True)
def _own_surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs and the machine's measurement lock are in temporary folders, never in the user's home. The visitor of an
    `AppTest`, which has no request of its own, has the token of this server; and it looks for no components in the
    metadata of all packages that are installed, which takes 0.2 s."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAPBENCH_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("MAPBENCH_LOCK", str(tmp_path_factory.mktemp("lock") / "measure.lock"))
        patch.setattr(ContextProxy, "cookies", property(lambda _: dict([permission.cookie()])))
        patch.setattr(BidiComponentManager, "discover_and_register_components", lambda *_, **__: None)
        yield


@pytest.fixture(scope="session")
def host() -> Iterator[Launcher]:
    """A host for all tests that only need one: TensorFlow is imported once for them.

    A test that has asked for a subject waits for its end, and one that kills or closes a host has its own.
    """
    with running_host() as launcher:
        yield launcher


@pytest.fixture(scope="session")
def start_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., AppServer]]:
    """``start_app(module="streamlit", **env)`` returns a server of the app that lives to the end of the tests: one for
    all who ask for the same.

    Nothing may outlive a server, and its log may hold no traceback.
    """

    @functools.cache
    def start(module: str = "streamlit", **env: str) -> AppServer:
        home = tmp_path_factory.mktemp("server") / "home"
        servers.append(AppServer.start(ROOT / "app.py", home, env, module))
        return servers[-1]

    servers: list[AppServer] = []
    yield start
    problems = []
    for server in servers:
        problems += [f"outlived its server: {command}" for command in server.stop()]
        log = server.log()
        if TRACEBACK in log:
            problems.append(f"traceback in the server's log:\n{log}")
    assert not problems, "\n".join(problems)


@pytest.fixture
def app_server(start_app: Callable[..., AppServer]) -> Iterator[AppServer]:
    """The app on simulated subjects, for all tests that only need a server.

    A test leaves nothing that is measured, also where it fails; it may find runs that others have left.
    """
    server = start_app("tests.simulated_worker streamlit")
    yield server
    kept = Store(server.home)
    (server.home / GO_ON).touch()
    try:
        eventually(lambda: all(kept.look(run_id).state == "finished" for run_id in ids(kept)), "nothing is measured")
    finally:
        (server.home / GO_ON).unlink()


@pytest.fixture(scope="session")
def _browser() -> Iterator[tuple[Browser, asyncio.AbstractEventLoop]]:
    with sync_playwright() as playwright:
        chromium = launch(playwright)
        chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
        yield chromium, (loop := asyncio.get_running_loop())
        asyncio._set_running_loop(loop)
        chromium.close()


@pytest.fixture
def browser(_browser: tuple[Browser, asyncio.AbstractEventLoop]) -> Iterator[Browser]:
    """One browser for all tests. As long as it lives, so does Playwright's event loop in this thread, in which
    `asyncio.run` would fail: between the tests that use it the loop is out of sight."""
    chromium, loop = _browser
    asyncio._set_running_loop(loop)
    yield chromium
    asyncio._set_running_loop(None)


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Gathers the errors of a test's pages and asserts at its end that there were none."""
    watch = Watch()
    yield watch
    assert not watch.problems, "\n".join(watch.problems)


@pytest.fixture
def page(browser: Browser, watch: Watch) -> Iterator[Page]:
    """A page, with a session of its own. All are of one context: scripts that one has compiled, the next one takes from
    the cache."""
    page = browser.contexts[0].new_page()
    page.set_viewport_size({"width": 1280, "height": 800})
    page.set_default_timeout(1000 * ANSWER_S)
    watch.follow(page)
    yield page
    for one in browser.contexts[0].pages:
        one.close()
