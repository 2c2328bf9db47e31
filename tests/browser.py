"""A real browser and a real server for tests: find or start them, and look at pages.

Run as a script it opens a browser once and prints its version; the exit status is 1, with the reason, where that fails.
"""

import contextlib
import http.client
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from playwright.sync_api import Browser, Error, Page, Playwright, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # a script finds only what is beside it

from tests.deadlines import ANSWER_S, GONE_S, RUN_S

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Containers run as root, without a GPU and with a small /dev/shm; and a test needs nothing from the network.
_OFF = ("sandbox", "gpu", "dev-shm-usage", "quic", "first-run", "background-networking", "component-update", "sync")
ARGUMENTS = [f"--{'no' if name in ('sandbox', 'first-run') else 'disable'}-{name}" for name in _OFF]
TOKEN = "the-token-of-all-servers-of-tests"
TRACEBACK = "Traceback"  # as a plain log and as a page write it


def find_browser() -> str | None:
    """Path of the Chromium or Chrome to drive: ``$MAPBENCH_BROWSER``, else one on PATH; None: Playwright's own."""
    chosen = os.environ.get("MAPBENCH_BROWSER")
    for name in [chosen] if chosen else PROGRAMS:
        path = shutil.which(name)
        # Ubuntu's chromium-browser without snapd only prints advice.
        if path and subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0:
            return path
    if chosen:
        raise FileNotFoundError(f"MAPBENCH_BROWSER must name a program that can be run, and is {chosen!r}")
    return None


def launch(playwright: Playwright) -> Browser:
    """Start a headless Chromium."""
    return playwright.chromium.launch(executable_path=find_browser(), headless=True, args=ARGUMENTS)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class AppServer:
    """``python -m streamlit run`` of one app, with its standard output and error in a file."""

    url: str
    process: "subprocess.Popen[bytes]"
    log_path: Path
    home: Path

    @classmethod
    def start(
        cls, app: Path, home: Path, env: Mapping[str, str] | None = None, module: str = "streamlit"
    ) -> "AppServer":
        """Start ``app`` with its runs stored in ``home``, and return once it answers.

        ``env`` is added to the environment of this process; ``module``, with its arguments, serves the app. Raises
        RuntimeError with the log where the server ends or stays silent.
        """
        home.mkdir(parents=True, exist_ok=True)
        port = free_port()
        log_path = home.parent / f"{home.name}-server-{port}.log"
        options = {
            "server.headless": "true",
            "server.port": str(port),
            "server.fileWatcherType": "none",
            "browser.gatherUsageStats": "false",
            "logger.enableRich": "false",  # its colour codes would split the words that tests look for
        }
        command = [sys.executable, "-m", *module.split(), "run", str(app)]
        command += [part for name, value in options.items() for part in (f"--{name}", value)]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "MAPBENCH_HOME": str(home), "MAPBENCH_TOKEN": TOKEN}
        environment |= env or {}
        with log_path.open("wb") as log:
            process = subprocess.Popen(
                command, cwd=app.parent, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                process_group=0,
            )  # fmt: skip
        server = cls(f"http://127.0.0.1:{port}", process, log_path, home)
        try:
            deadline = time.monotonic() + RUN_S
            while not server._is_ready(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"no server, its exit status is {process.returncode}:\n{server.log()}")
                time.sleep(0.05)
        except BaseException:
            server.stop()
            raise
        return server

    def _is_ready(self, port: int) -> bool:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_S)) as connection:
            with contextlib.suppress(OSError):
                connection.request("GET", "/_stcore/health")
                return connection.getresponse().status == 200
        return False

    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def children(self) -> list[psutil.Process]:
        """The server's processes below it, however deep."""
        try:
            return psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def stop(self) -> list[str]:
        """End the server, as a user would, and return the command lines of children that outlived it, which are ended
        too."""
        children = self.children()
        self.process.terminate()
        try:
            self.process.wait(GONE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        left = []
        for child in psutil.wait_procs(children, timeout=GONE_S)[1]:
            with contextlib.suppress(psutil.NoSuchProcess):
                left.append(f"{child.pid} {' '.join(child.cmdline())}")
                child.kill()
        return left


# A page that is opened by its address asks for Streamlit's own files beside itself first.
_FORGIVEN = re.compile(r"status of 404.*/_stcore/")


@dataclass
class Watch:
    """What went wrong in pages, gathered while a test uses them."""

    problems: list[str] = field(default_factory=list)

    def follow(self, page: Page) -> None:
        page.on("console", lambda message: self._console(message.type, message.text, message.location))
        page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        page.on("crash", lambda _: self.problems.append("the page crashed"))

    def _console(self, kind: str, text: str, location: object) -> None:
        problem = f"console error: {text} ({location})"
        if kind == "error" and not _FORGIVEN.search(problem):
            self.problems.append(problem)


# The state is `notRunning` for a moment between a click and the run that it starts: quiet has to last. After the script
# has run, an element whose code is still being loaded stands there as a skeleton.
_IDLE = """quietMs => {
  const app = document.querySelector('[data-testid=stApp]');
  const idle = app !== null
    && app.dataset.testScriptState === 'notRunning'
    && app.dataset.testConnectionState === 'CONNECTED'
    && app.querySelector('[data-testid=stSkeleton]') === null;
  const now = performance.now();
  if (!idle) { window.__idleSince = undefined; return false; }
  if (window.__idleSince === undefined) window.__idleSince = now;
  return now - window.__idleSince >= quietMs;
}"""


def wait_idle(page: Page, quiet_ms: int = 250) -> None:
    """Wait until the page's script has run, all is drawn, and nothing has started it again for ``quiet_ms``."""
    page.evaluate("() => { window.__idleSince = undefined; }")
    try:
        page.wait_for_function(_IDLE, arg=quiet_ms, timeout=1000 * ANSWER_S, polling=25)
    except Error as error:
        state = page.locator("[data-testid=stApp]").evaluate_all("apps => apps.map(app => ({...app.dataset}))")
        raise AssertionError(f"the page was not idle within {ANSWER_S:.0f} s; its state is {state}") from error


if __name__ == "__main__":
    try:
        with sync_playwright() as playwright:
            browser = launch(playwright)
            browser.new_page().set_content("<p>ready</p>")
            print(f"Chromium {browser.version}")
            browser.close()
    except (Error, FileNotFoundError) as error:
        sys.exit(str(error).strip())
