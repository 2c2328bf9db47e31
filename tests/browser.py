"""A real browser and a real server for tests: find or start them, and look at pages.

Run as a script it opens a browser once and prints its version; the exit status is 1, with the reason, where that fails.
"""

import contextlib
import ctypes
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from playwright.sync_api import Browser, Error, Page, Playwright, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # a script finds only what is beside it

from tests.deadlines import ANSWER_S, GONE_S, RUN_S

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Containers run as root, without a GPU and with a small /dev/shm; and a test needs nothing from the network.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
TRACEBACK = "Traceback"  # as a plain log and as a page write it
_LOOK_S = 0.05
_PR_SET_PDEATHSIG = 1


def find_browser() -> str | None:
    """Path of the Chromium or Chrome to drive: ``$MAPBENCH_BROWSER``, else one on PATH; None: Playwright's own."""
    chosen = os.environ.get("MAPBENCH_BROWSER")
    if chosen:
        path = shutil.which(chosen)
        if path is None:
            raise FileNotFoundError(f"MAPBENCH_BROWSER must name a program that can be run, and is {chosen!r}")
        return path
    for name in PROGRAMS:
        path = shutil.which(name)
        # Ubuntu's chromium-browser without snapd only prints advice.
        if path and subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0:
            return path
    return None


def launch(playwright: Playwright, *more: str) -> Browser:
    """Start a headless Chromium. ``more``: arguments of its command line."""
    return playwright.chromium.launch(executable_path=find_browser(), headless=True, args=[*ARGUMENTS, *more])


@contextlib.contextmanager
def launched() -> Iterator[Browser]:
    """A headless Chromium with one context, whose pages may use the clipboard."""
    with sync_playwright() as playwright:
        chromium = launch(playwright)
        chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
        yield chromium
        chromium.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _ends_with_this_process() -> Callable[[], None]:
    """What a child does first, so that the kernel ends it with the thread that has started it (Linux)."""
    try:
        # Loaded before the fork: in the child another thread's lock may be held for ever.
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return lambda: None
    return lambda: prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


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
        """Start ``app`` with its runs stored in ``home``, and return once it answers. It ends with this process.

        ``env`` is added to the environment of this process; ``module`` serves the app. Raises RuntimeError with the log
        where the server ends or stays silent.
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
        command = [sys.executable, "-m", module, "run", str(app)]
        command += [part for name, value in options.items() for part in (f"--{name}", value)]
        with log_path.open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=app.parent,
                env={**os.environ, "PYTHONUNBUFFERED": "1", "MAPBENCH_HOME": str(home), **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
                preexec_fn=_ends_with_this_process(),
            )
        server = cls(f"http://127.0.0.1:{port}", process, log_path, home)
        try:
            server._wait_ready(port)
        except BaseException:
            server.stop()
            raise
        return server

    def _wait_ready(self, port: int) -> None:
        deadline = time.monotonic() + RUN_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with status {self.process.returncode}:\n{self.log()}")
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_S)
            try:
                connection.request("GET", "/_stcore/health")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                pass
            finally:
                connection.close()
            time.sleep(_LOOK_S)
        raise RuntimeError(f"the server did not answer within {RUN_S:.0f} s:\n{self.log()}")

    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def children(self) -> list[psutil.Process]:
        """The server's processes below it, however deep."""
        try:
            return psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def stop(self) -> list[str]:
        """End the server, as a user would, and return the command lines of children that outlived it.

        Those are ended too.
        """
        children = self.children()
        self.process.terminate()
        try:
            self.process.wait(GONE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        _, alive = psutil.wait_procs(children, timeout=GONE_S)
        left = []
        for child in alive:
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


def wait_idle(page: Page, quiet_ms: int = 250, timeout_ms: float = 1000 * ANSWER_S) -> None:
    """Wait until the page's script has run, all is drawn, and nothing has started it again for ``quiet_ms``."""
    page.evaluate("() => { window.__idleSince = undefined; }")
    try:
        page.wait_for_function(_IDLE, arg=quiet_ms, timeout=timeout_ms, polling=25)
    except Error as error:
        state = page.locator("[data-testid=stApp]").evaluate_all("apps => apps.map(app => ({...app.dataset}))")
        raise AssertionError(f"the page was not idle within {timeout_ms:.0f} ms; its state is {state}") from error


def check() -> int:
    """Open a browser and a page; 0 where that works."""
    try:
        with sync_playwright() as playwright:
            browser = launch(playwright)
            browser.new_page().set_content("<p>ready</p>")
            print(f"Chromium {browser.version}")
            browser.close()
    except (Error, FileNotFoundError) as error:
        print(str(error).strip(), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(check())
