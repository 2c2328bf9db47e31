"""nginx with the server block of docs/hosting.md, in front of a server, on this machine alone:
``python -m tests.deployments.nginx``. It needs nginx and openssl; systemd-analyze looks at the documented unit.

Only ports and paths of the block are replaced. The certificate is signed by itself.
"""

import argparse
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from measure.store.store import Store
from tests import synthetic
from tests.browser import ROOT, TRACEBACK, AppServer, free_port, launch, wait_idle

NAME = "map.example.org"
RUN = "a" * 24
_PATIENCE_S = 20.0


def documented(language: str) -> str:
    """The one block of this language in the documentation."""
    text = (ROOT / "docs/hosting.md").read_text(encoding="utf-8")
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return str(block)


def configured(folder: Path, app: int, plain: int, secure: int) -> Path:
    """The block with the ports and paths of this machine, in a configuration that a user may start."""
    block = documented("nginx")
    for old, new in (
        ("listen 80;", f"listen 127.0.0.1:{plain};"),
        ("listen [::]:80;", ""),
        ("listen 443 ssl http2;", f"listen 127.0.0.1:{secure} ssl http2;"),
        ("listen [::]:443 ssl http2;", ""),
        ("/etc/ssl/certs/map.example.org.pem", f"{folder}/cert.pem"),
        ("/etc/ssl/private/map.example.org.key", f"{folder}/key.pem"),
        ("http://127.0.0.1:8501", f"http://127.0.0.1:{app}"),
    ):
        if block.count(old) != 1:
            raise RuntimeError(f"{old!r} stands {block.count(old)} times in the documented block")
        block = block.replace(old, new)
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    file = folder / "nginx.conf"
    file.write_text(
        f"daemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\nevents {{}}\n"
        f"http {{\naccess_log {folder}/access.log;\n{temporary}{block}}}\n"
    )
    return file


def answered(port: int, request: str, *, plain: bool = False) -> str:
    """The head of the answer to a request that is written as it goes over the wire."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_S) as connection:
        stream = connection if plain else context.wrap_socket(connection, server_hostname=NAME)
        stream.sendall(request.replace("\n", "\r\n").encode())
        return stream.recv(4096).decode(errors="replace")


def tried(page: Page, server: AppServer, plain: int, secure: int) -> None:
    """Check what the block promises; a line for each."""
    page.goto(f"https://{NAME}:{secure}/?run={RUN}")
    wait_idle(page)  # which waits for the WebSocket
    expect(page.locator(".st-key-body")).to_contain_text("vectorized_map.graph")
    print("a page and its WebSocket come through TLS")

    page.get_by_role("link", name="Runs").click()
    page.locator("input[type=file]").set_input_files(ROOT / "tests/data/sweep_1.json")
    expect(page.get_by_role("link", name="Open it")).to_be_visible()
    print("a run file is taken")

    head = f"Host: {NAME}\n"
    said = answered(secure, f"PUT /_stcore/upload_file/x/y HTTP/1.1\n{head}Content-Length: {18 * 2**20}\n\n")
    _expect(said, " 413 ", "a body over the limit is refused before it is read")
    _expect(
        answered(secure, f"GET /_stcore/metrics HTTP/1.1\n{head}\n"), " 404 ", "Streamlit's own metrics are not there"
    )
    _expect(answered(secure, f"GET /_stcore/health HTTP/1.1\n{head}\n"), " 200 ", "the server is healthy")
    said = answered(plain, f"GET /sweep?x=1 HTTP/1.1\n{head}\n", plain=True)
    _expect(said, f"Location: https://{NAME}/sweep?x=1", "without TLS one is sent on")
    upgrade = "Upgrade: websocket\nConnection: Upgrade\nSec-WebSocket-Version: 13\n"
    upgrade += "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\n"
    said = answered(secure, f"GET /_stcore/stream HTTP/1.1\nHost: other.example.org\n{upgrade}\n")
    _expect(said, " 403 ", "a WebSocket for another name is refused")
    if TRACEBACK in server.log():
        raise RuntimeError(server.log())


def _expect(said: str, part: str, promise: str) -> None:
    if part not in said:
        raise RuntimeError(f"not kept: {promise}: {said[:300]}")
    print(promise)


def verified(folder: Path) -> None:
    """Have systemd look at the documented unit; its program stands elsewhere on this machine."""
    unit = folder / "mapbench.service"
    unit.write_text(re.sub(r"ExecStart=\S+", f"ExecStart={shutil.which('true')}", documented("ini")))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    ours = [line for line in done.stderr.splitlines() if "mapbench" in line]
    if done.returncode or ours:
        raise RuntimeError(done.stderr)
    print("the unit is one that systemd takes")


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory(prefix="mapbench-nginx-") as name:
        folder = Path(name)
        verified(folder)
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={NAME}",
             "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")], check=True, capture_output=True,
        )  # fmt: skip
        kept = Store(folder / "home")
        kept.add(synthetic.run(RUN), "")
        kept.close()
        settings = {
            "MAPBENCH_HOSTED": "1",
            "MAPBENCH_VIEWER": "1",  # what is measured is no matter of a proxy's
            "MAPBENCH_TRUSTED_PROXIES": "127.0.0.1",
            "STREAMLIT_SERVER_ALLOWED_HOSTS": NAME,
        }
        server = AppServer.start(ROOT / "app.py", folder / "home", settings)
        plain, secure = free_port(), free_port()
        file = configured(folder, int(server.url.rpartition(":")[2]), plain, secure)
        nginx = subprocess.Popen(["nginx", "-c", str(file)])
        try:
            _wait(nginx, secure)
            with sync_playwright() as playwright:
                browser = launch(playwright, f"--host-resolver-rules=MAP {NAME} 127.0.0.1")
                tried(browser.new_context(ignore_https_errors=True).new_page(), server, plain, secure)
                browser.close()
        finally:
            nginx.terminate()
            nginx.wait()
            server.stop()
    return 0


def _wait(nginx: "subprocess.Popen[bytes]", port: int) -> None:
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end and nginx.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("nginx does not start")


if __name__ == "__main__":
    sys.exit(main())
