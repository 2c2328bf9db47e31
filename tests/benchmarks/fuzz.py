"""3,000 files and links that nobody would make, on the pages of a hosted server: ``python -m tests.benchmarks.fuzz``;
some two minutes.

Each is refused with a sentence or shown, within 2 s of the process's time, and no fault of Mapbench is met. The exit
status is 1 where that does not hold.
"""

import argparse
import contextlib
import json
import logging
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest
import streamlit as st
from starlette.responses import HTMLResponse
from streamlit.components.v2.component_manager import BidiComponentManager

import workloads
from measure import client
from measure.claims import known
from measure.output import export
from measure.store import imports
from tests.asgi import ask
from tests.benchmarks.common import Figure, report, start
from tests.engine import ROOT
from tests.pages import StoredClient, open_page
from tests.synthetic import HOSTILE
from views.choices import address
from views.pages.preview import Preview

_COUNT, _MOST_S = 3_000, 2.0
_FILES = [*sorted((ROOT / "tests/data").glob("*_[0-9].json")), ROOT / "views/examples/claim.json"]
_NUMBERS = (0, -1, 7, 18, 0.5, -0.0, 1e308, -1e308, 5e-324, 2**53 + 1, 2**63, 10**400, float("nan"), True)
_TEXTS = (
    "", "x", HOSTILE, "\0", "\u202e", "\ufffd", "🙂" * 50, "a" * 100_000, "![x](http://example.org)", "../../x", "18",
    "1e999", "٣", "loop.eager", "all", "batch", "chunked.graph?chunk=0", "0123456789abcdef01234567", "%00%ff",
)  # fmt: skip
_DEEP = json.loads("[" * 200 + "]" * 200)
_JUNK = (*_NUMBERS, *_TEXTS, None, {}, [0.5] * 20_000, _DEEP, {f"key {number}": number for number in range(8_000)})


def _places(part: Any) -> Iterator[tuple[Any, Any]]:
    """Each container of a document, with each of its keys."""
    for key, value in part.items() if isinstance(part, dict) else enumerate(part):
        yield part, key
        if isinstance(value, dict | list):
            yield from _places(value)


def _file(chosen: random.Random) -> bytes:
    """A run file that is changed at some places, and in some of its bytes, or in neither."""
    document = json.loads(chosen.choice(_FILES).read_bytes())
    for _ in range(chosen.choice([0, 1, 1, 1, 2, 5])):
        (part, key), (other, there) = chosen.choices([*_places(document)], k=2)
        new = json.dumps(chosen.choice([*chosen.choices(_JUNK, k=2), other[there], part.pop(key)]))
        if isinstance(part, list):
            many = [50, 1_500] if len(new) < 10_000 else []
            part[key:key] = [json.loads(new) for _ in range(chosen.choice([0, 1, 1, 1, *many]))]
        else:
            part[chosen.choice([key, key, key, *_TEXTS[:3]])] = json.loads(new)
    data = json.dumps({**document, "id": f"{chosen.getrandbits(96):024x}"}).encode()
    if chosen.random() < 0.3:
        place = chosen.randrange(len(data))
        end = place + chosen.choice([0, 1, 10, len(data)])
        data = data[:place] + chosen.choice([b"", chosen.randbytes(50), data[place - 300 : end]]) + data[end:]
    return data


def _open_file(data: bytes, chosen: random.Random) -> None:
    try:
        run = imports.read(data, 16 * 2**20)
    except ValueError as error:
        if not str(error).isprintable() or len(str(error)) > 1_000:
            raise AssertionError("the refusal is no sentence") from error
        return
    client.shared().store.add(run)
    _open(run.kind, {"run": [run.id], "tab": [chosen.choice(["Why", "Code", "Samples", "Details"])]})
    for _ in (export.markdown(run), *export.table_csv(run), *export.samples_csv(run)):
        pass


def _open_link(chosen: random.Random) -> None:
    page: Any = chosen.choice(["compare", "sweep", "claims", "runs"])
    form: dict[str, Any] = {"workload": chosen.choice(workloads.names())}
    for field in address.fields("sweep" if page == "sweep" else "compare", form):
        form.setdefault(field.key, field.default)
    chunks = [f"chunked.graph?chunk={number}" for number in range(1, chosen.choice([20, 1_000]))]
    names = [*form, "run", "tab", "claim", "from", "to", "x" * 1_000, HOSTILE, "own_elems"]
    values = [[str(chosen.choice(_NUMBERS))], chosen.choices(_TEXTS), chosen.sample(_TEXTS, 4), chunks]
    params = {name: chosen.choice(values) for name in chosen.sample(names, chosen.choice([1, 2, 3, 6, 12]))}
    likely = {"workload": [form["workload"]], "strategies": chunks, "claim": [chosen.choice(known.all_claims()).id]}
    _open(page, params | {name: value for name, value in likely.items() if chosen.random() < 0.3})


def _open(page: str, params: dict[str, list[str]]) -> None:
    ask(Preview(HTMLResponse("<title>Streamlit</title>")), f"/?{urlencode(params, doseq=True)}")
    open_page(page, **params)


@contextlib.contextmanager
def hosted(home: Path) -> Iterator[None]:
    """A server of strangers, as a page without a browser has it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAPBENCH_HOSTED", "1")
        for name, value in (("cookies", {}), ("headers", SimpleNamespace(get_all=lambda _: [])), ("ip_address", None)):
            patch.setattr(type(st.context), name, property(lambda _, value=value: value))
        patch.setattr(BidiComponentManager, "discover_and_register_components", lambda *_, **__: None)
        shared = StoredClient(home)
        patch.setattr(client, "shared", lambda: shared)
        yield


def attempt(seed: int) -> tuple[float, str, str]:
    """Open the file of an odd seed, the link of an even one; the process's seconds, which it was, and the fault."""
    chosen, fault = random.Random(seed), ""
    data = _file(chosen) if seed % 2 else b""
    began_s = time.process_time()
    try:
        _open_file(data, chosen) if data else _open_link(chosen)
    except Exception as error:  # a fault is what is looked for; what a page has caught is its sentence
        fault = repr(error)
    return time.process_time() - began_s, f"{'file' if seed % 2 else 'link'} {seed}", fault


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    start(f"{_COUNT:,} files and links")
    logging.disable()
    with tempfile.TemporaryDirectory() as home, hosted(Path(home)):
        attempt(0), attempt(1)  # what the first pages load is not counted
        tried = [attempt(seed) for seed in range(_COUNT)]
    faults, slowest = [one for one in tried if one[2]], sorted(tried, reverse=True)[:10]
    status = report([Figure("faults", len(faults), 0, "{:,.0f}".format), Figure("slowest", slowest[0][0], _MOST_S)])
    print(*(f"{cpu_s:.2f} s {name} {fault[:300]}" for cpu_s, name, fault in (*slowest, *faults)), sep="\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
