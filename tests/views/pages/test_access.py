"""Access to a server: requests that are refused, and headers of every answer; the ASGI application is called,
and a server is attacked."""

import asyncio
import http.client
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from streamlit import config
from websockets.exceptions import InvalidStatus

from measure import hosting
from tests.asgi import Answer, ask
from tests.browser import TOKEN, AppServer
from tests.websocket import PRESSED, Page
from views.pages import access
from views.ui import permission

HOME = "localhost:8501"
GUARDS = {"content-security-policy": "frame-ancestors 'self'", "x-content-type-options": "nosniff",
          "referrer-policy": "same-origin"}  # fmt: skip


@pytest.fixture(autouse=True)
def _names(monkeypatch: pytest.MonkeyPatch):
    """Streamlit's settings of a test go with it."""
    before = {name: config.get_option(name) for name in ("server.allowedHosts", "server.address")}
    monkeypatch.setattr(config, "on_config_parsed", lambda *_, **__: None)
    yield
    for name, value in before.items():
        config.set_option(name, value)


def get(address: str = "/", **headers: str) -> Answer:
    named = {"host": HOME, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return ask(access.Access(PlainTextResponse("a page")), address, headers=named)


def test_a_server_of_this_machine_answers_to_its_own_names_and_those_that_are_set():
    hosts = {"localhost:8501": True, "LOCALHOST": True, "127.0.0.1": True, "[::1]:8501": True, "127.0.0.2": True,
             "evil.example:8501": False, "localhost.evil.example": False, "127.0.0.1.evil.example": False,
             "evil.example@localhost": False, "": False}  # fmt: skip

    def answers(host: str) -> bool:
        answer = get(host=host)
        assert (answer.text == "a page") is (answer.status == 200) is (answer.status != 403), answer
        return answer.status == 200

    config.set_option("server.address", "127.0.0.2")
    access.check_names()
    assert {host: answers(host) for host in hosts} == hosts
    # One that others reach has whatever name they know it by, until its names are set; those of its machine stay.
    for names, expected in (([], (True, True, True)), (["map.example.org"], (True, True, False))):
        config.set_option("server.address", "0.0.0.0")
        config.set_option("server.allowedHosts", names)
        access.check_names()
        assert (answers("localhost"), answers("map.example.org"), answers("evil.example")) == expected


def test_what_a_proxy_has_forwarded_is_refused_unless_the_settings_tell_of_one(monkeypatch: pytest.MonkeyPatch):
    forwarded = ("forwarded", "via", "x-real-ip", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto")
    for name in forwarded:
        answer = get(**{name: "10.0.0.1"})
        assert answer.status == 403 and hosting.PROXIES in answer.text
    for setting, value, status in (
        (hosting.PROXIES, "127.0.0.1", 200), ("MAPBENCH_HOSTED", "1", 200), ("MAPBENCH_VIEWER", "1", 200),
        ("MAPBENCH_OWN_CODE", "1", 200), ("MAPBENCH_OWN_CODE", "0", 403),
    ):  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setenv(setting, value)
            assert get(x_forwarded_for="10.0.0.1").status == status, setting


def test_the_address_with_the_token_leads_to_the_same_without_it_and_a_cookie():
    token, (name, value) = permission.token(), permission.cookie()
    for address, leads_to in (
        (f"/?token={token}", "./"),
        (f"/a/folder/sweep?strategies=a%26b&token={token}&strategies=c", "./sweep?strategies=a%26b&strategies=c"),
        (f"//evil.example?token={token}", "./evil.example"),
    ):
        answer = get(address)
        assert (answer.status, answer.headers["location"]) == (303, leads_to)
        pair, *marks = answer.headers["set-cookie"].split("; ")
        assert pair == f"{name}={value}" and {"HttpOnly", "SameSite=strict", "Path=/"} <= set(marks)
    wrong = get("/?token=wrong%C3%A9")
    assert wrong.headers["location"] == "./" and "set-cookie" not in wrong.headers
    assert "set-cookie" not in get("/").headers, "pages open without it"


def test_every_answer_says_who_may_frame_it_that_its_type_is_sure_and_that_its_address_stays_here(
    monkeypatch: pytest.MonkeyPatch,
):
    access.check_names()
    for path, host, status in (("/", HOME, 200), ("/?token=1", HOME, 303), ("/", "evil.example", 403)):
        answer = get(path, host=host)
        assert answer.status == status and GUARDS.items() <= answer.headers.items()
    fault = asyncio.run(access.fault(Request({"type": "http"}), RuntimeError("a secret")))
    assert fault.status_code == 500 and GUARDS.items() <= dict(fault.headers).items() and b"secret" not in fault.body
    monkeypatch.setenv("MAPBENCH_FRAME_ANCESTORS", "https://example.org")
    assert get().headers["content-security-policy"] == "frame-ancestors 'self' https://example.org"


def test_neither_a_website_nor_another_account_has_code_run_and_who_has_the_token_does(
    start_app: Callable[..., AppServer], tmp_path: Path
):
    server = start_app()
    port = int(server.url.rpartition(":")[2])
    assert f"http://127.0.0.1:{port}/?token={TOKEN}" in server.log(), "it is printed, and no other server can be at it"

    def answer(host: str, path: str) -> http.client.HTTPResponse:
        line = http.client.HTTPConnection("127.0.0.1", port)
        line.request("GET", path, headers={"Host": f"{host}:{port}"})
        return line.getresponse()

    for path in ("/", "/_stcore/health", "/static/x.js", "/export/runs.zip"):
        assert answer("evil.example", path).status == 403 != answer("localhost", path).status
    cookie = str(answer("localhost", f"/?token={TOKEN}").headers["Set-Cookie"]).partition(";")[0]
    asyncio.run(_attack(port, cookie, tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["own"]


async def _attack(port: int, cookie: str, folder: Path) -> None:
    """Have code run that leaves a file in a folder: by another website and another account, which are to fail, then by
    who has the token's cookie."""
    home, evil = f"http://localhost:{port}", f"http://evil.example:{port}"

    async def opened(url: str, origin: str | None, **headers: str) -> Page:
        return await Page.open(url, headers=headers, origin=origin, host="127.0.0.1")

    # Another website: by a name of its own that leads here, by the server's, through a proxy; whatever it holds.
    for url, origin in ((evil, evil), (evil, home), (evil, None), (home, "http://evil.example"), (home, f"{home}1")):
        with pytest.raises(InvalidStatus):
            await opened(url, origin, Cookie=cookie)
    with pytest.raises(InvalidStatus):
        await opened(home, home, Cookie=cookie, Forwarded="for=10.0.0.1")
    # Another account of the machine, without the token: it sends what it would send if the editor were drawn.
    own, other = await opened(home, home, Cookie=cookie), await opened(home, None, Cookie=f"{cookie}0")
    for page in (own, other):
        await page.press("own_window")
    assert not {"own_check", "own_code_1"} & set(other.widgets())
    editor, check = own.widgets()["own_code_1"], own.widgets()["own_check"]
    for page, name in ((other, "other"), (own, "own")):
        code = f"open({str(folder / name)!r}, 'w').close()\nxs = [1.0]\n\n\ndef f(x):\n    return x\n"
        await page.rerun({editor: {"json_value": json.dumps(code)}})
        await page.rerun({editor: {"json_value": json.dumps(code)}, check: PRESSED})
        await page.close()
