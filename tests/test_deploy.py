"""The files of deploy/ agree with each other, with the docs and with the code; `deploy/check` runs what they say."""

import re

from measure.hosting import limits
from tests.browser import ROOT

TEXTS = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "deploy").iterdir()}
CONTAINER, ENV, NGINX = TEXTS["Containerfile"], TEXTS["mapbench.env"], TEXTS["nginx.conf"]


def settings(text: str) -> dict[str, str]:
    return dict(re.findall(r"\b((?:MAPBENCH|STREAMLIT)_[A-Z_]+)=([\w./:]+)", text))


def test_settings_are_documented_and_one_port_and_one_domain_are_named() -> None:
    docs = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("using.md", "hosting.md"))
    env, box = settings(ENV), settings(CONTAINER)
    assert [name for name in env | box if f"`{name}" not in docs] == []
    port, domain = env["STREAMLIT_SERVER_PORT"], env["STREAMLIT_SERVER_ALLOWED_HOSTS"]
    assert set(re.findall(r"proxy_pass http://127\.0\.0\.1:(\d+);", NGINX)) == {port, box["STREAMLIT_SERVER_PORT"]}
    assert f"\nEXPOSE {port}\n" in CONTAINER and set(re.findall(r"server_name +([^;]+);", NGINX)) == {domain}
    assert env["MAPBENCH_HOSTED"] == box["MAPBENCH_HOSTED"] == "1"


def test_both_units_have_the_same_rights_and_a_file_of_the_largest_size_goes_through_the_proxy(monkeypatch) -> None:
    pages, worker = (set(TEXTS[f"{name}.service"].splitlines()) for name in ("mapbench", "mapbench-worker"))
    differ = {line.partition("=")[0] for line in pages ^ worker if "=" in line}
    assert differ == {"Description", "ExecStart", "CPUWeight"} and "UMask=0077" in pages & worker
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    (most_mib,) = re.findall(r"upload_file/ \{[^}]*client_max_body_size +(\d+)m;", NGINX)
    assert int(most_mib) > (limits().upload_mib or 0) > 0
