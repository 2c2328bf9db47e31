"""Files as nobody means them: each is accepted, shown and exported without a fault, or refused with one sentence."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from measure import client
from measure.model.run import Run
from measure.model.run_file import decode, encode
from measure.output import export
from measure.store import imports
from tests.deadlines import RUN_S
from tests.engine import ROOT
from tests.pages import StoredClient

_MOST_SENTENCE = 2_000
FILES = tuple(sorted((ROOT / "tests" / "data").glob("*_1.json")))

_ODD: tuple[Any, ...] = (
    None, True, -1, 0, 2**63, 10**400, 1e308, -1e-320, 0.1, "", " ", "-1", "1e9", "NaN", "x" * 10_000, "\x00",
    "\u202e\u2066", "../../etc/passwd", "<script>alert(1)</script>", "$x^2$ **[a](javascript:b)** :material/x:",
    "%s%n{0}{self.__class__}", "'; DROP TABLE runs; --", [], {}, [[]], [None], {"": {}}, ["a"] * 500,
)  # fmt: skip


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoredClient]:
    """The pages of a hosted server, with a store and nothing that measures."""
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    own = StoredClient(tmp_path)
    monkeypatch.setattr(client, "shared", lambda: own)
    own.store.add(decode(FILES[0].read_bytes()))
    yield own
    own.store.close()


def check_sentence(error: Exception) -> None:
    said = str(error)
    assert said and "\n" not in said and "Traceback" not in said and len(said) <= _MOST_SENTENCE, said[:200]


def draw(run: Run) -> None:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=RUN_S)
    if run.kind != "compare":
        app.switch_page(f"views/pages/{run.kind}.py")
    app.query_params["run"] = run.id
    app.run()
    assert not app.exception, [each.message for each in app.exception]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a document."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        items = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
        for key, item in list(items):
            yield found, key
            waiting.append(item)


def fuzzed_file(number: int) -> bytes:
    """The same for a number every time."""
    chance = random.Random(number)
    data = chance.choice(FILES).read_bytes()
    match number % 4:
        case 0:
            changed = bytearray(data)
            for _ in range(chance.choice((1, 3, 100))):
                changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
            return bytes(changed)
        case 1:
            deep = b"[" * 100_000 + b"1" + b"]" * 100_000
            cut = data[: chance.randrange(len(data))]
            return chance.choice((cut, b"", b"null", data.decode().encode("utf-16"), data * 2, b'{"a":' + deep + b"}"))
    document = json.loads(data)
    for _ in range(chance.choice((1, 2, 10))):
        container, key = chance.choice(list(places(document)))
        if number % 4 == 2:
            container[key] = chance.choice(_ODD)
        else:
            del container[key]
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")


def test_a_fuzzed_file_is_accepted_and_shown_or_refused_with_one_sentence(own: StoredClient):
    accepted = []
    for number in range(80):
        try:
            run = imports.read(fuzzed_file(number))
        except ValueError as error:
            check_sentence(error)
            continue
        assert encode(decode(encode(run))) == encode(run)
        for text_of in (export.markdown, export.table_csv, export.samples_csv):
            text_of(run)
        own.store.delete([run.id])
        own.store.add(run)
        accepted.append(run)
    assert 0 < len(accepted) < 80
    for run in accepted[::10]:
        draw(run)
