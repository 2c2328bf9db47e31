"""Files, links and requests as nobody means them: mutations with seeds, and what has to become of each.

A file is accepted, and then shown and exported without a fault, or refused with one sentence, within 10 s. A link
draws its page without a traceback. A request that is refused starts nothing.
"""

import contextlib
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import strategies
import workloads
from measure import runner
from measure.engine.bench import Settings
from measure.model.request import Request, RequestError, parse
from measure.model.run import Run
from measure.model.run_file import decode, encode
from measure.output import export
from measure.runner import Runner
from measure.store import imports
from measure.store.store import Store
from measure.sweep.request import SweepRequest, parse_sweep
from tests.engine import QUICK, ROOT
from tests.pages import StoredRunner
from tests.subjects import Subjects

MOST_S = 10.0
_MOST_SENTENCE = 2_000
FILES = tuple(sorted((ROOT / "tests" / "data").glob("*_1.json")))
PAGES = ("compare", "sweep", "claims", "runs")
# Kinds of the files that are as large as a hosted server takes them, and cost seconds: one in so many.
LARGE_EVERY = 40
_LARGE_BYTES = 16 * 2**20 - 1

_ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 1e308, -1e-320, 0.1, "", " ", "0", "-1", "1e9",
    "NaN", "x" * 10_000, "\x00", "\u202e\u2066", "\U0001f4a5" * 200, "../../etc/passwd", "<script>alert(1)</script>",
    "$x^2$ **[a](javascript:b)** :material/x:", "%s%n{0}{self.__class__}", "'; DROP TABLE runs; --", [], {}, [[]],
    [None], {"": {}}, ["a"] * 500, {"a": [{"b": [{}]}]},
)  # fmt: skip


@dataclass
class Found:
    """What became of all that was tried, and what is wrong, a sentence each."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    slowest_s: float = 0.0

    def note(self, kind: str, outcome: str, seconds: float = 0.0) -> None:
        self.counts[f"{kind}: {outcome}"] += 1
        self.slowest_s = max(self.slowest_s, seconds)


# --- files -----------------------------------------------------------------------------------------------------------


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a document."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        items = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
        for key, item in list(items):
            yield found, key
            waiting.append(item)


def _written(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _flip_bits(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 3, 100))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _cut(data: bytes, chance: random.Random) -> bytes:
    begin = chance.choice((0, 0, chance.randrange(len(data))))
    return data[begin : chance.randrange(begin, len(data))]


def _change_values(data: bytes, chance: random.Random) -> bytes:
    document = json.loads(data)
    places = list(_places(document))
    for _ in range(chance.choice((1, 2, 10))):
        container, key = chance.choice(places)
        with contextlib.suppress(IndexError):
            container[key] = chance.choice(_ODD)
    return _written(document)


def _change_numbers(data: bytes, chance: random.Random) -> bytes:
    text = data.decode()
    numbers = [found.span() for found in re.finditer(r"-?\d+(\.\d+)?(e-?\d+)?", text)]
    begin, end = chance.choice(numbers)
    odd = (
        "1e999",
        "-0",
        "1" * 5_000,
        "0." + "0" * 5_000 + "1",
        "NaN",
        "Infinity",
        "1e-400",
        "9" * 20,
        "0x10",
        "1.",
        "",
    )
    return (text[:begin] + chance.choice(odd) + text[end:]).encode()


def _lose_and_move(data: bytes, chance: random.Random) -> bytes:
    document = json.loads(data)
    places = list(_places(document))
    container, key = chance.choice(places)
    other, there = chance.choice(places)
    with contextlib.suppress(IndexError, KeyError):
        if chance.random() < 0.5:
            del container[key]
        else:
            container[key], other[there] = other[there], container[key]
    try:
        return _written(document)
    except ValueError:  # a part has become a part of itself
        return data[:-1]


def _say_twice(data: bytes, chance: random.Random) -> bytes:
    text = data.decode()
    (name, *_) = chance.choice(list(re.finditer(r'"(\w+)": ?', text))).groups()
    place = chance.choice([found.end() for found in re.finditer(r"\{", text)])
    return f'{text[:place]}"{name}":{chance.choice(("1", "null", "[]"))},{text[place:]}'.encode()


def _nest(data: bytes, chance: random.Random) -> bytes:
    depth = chance.choice((100, 1_000, 100_000))
    begin, end = chance.choice((("[", "]"), ('{"a":', "}")))
    deep = begin * depth + "1" + end * depth
    return _into_environment(data, "deep", deep)


def _repeat(data: bytes, chance: random.Random) -> bytes:
    document = json.loads(data)
    lists = [container for container, _ in _places(document) if isinstance(container, list) and container]
    chosen = chance.choice(lists)
    chosen.extend(chosen[:1] * chance.choice((1, 100, 20_000)))
    return _written(document)


def _words(data: bytes, chance: random.Random) -> bytes:
    return chance.choice(
        (b"", b"\x00", b"null", b"[]", b"{}", b'"x"', b"\xef\xbb\xbf" + data, data.decode().encode("utf-16"), data * 2,
         b"PK\x03\x04" + data, chance.randbytes(5_000), data.replace(b"mapbench.run/1", b"mapbench.run/2"),
         data.replace(b'"', b"'"), b" " * 100_000 + data)
    )  # fmt: skip


def _into_environment(data: bytes, name: str, value: str) -> bytes:
    return re.sub(rb'"environment"\s*:\s*\{', lambda found: found[0] + f'"{name}":{value},'.encode(), data, count=1)


def _fill(data: bytes, chance: random.Random) -> bytes:
    """As large as a file may be, of one thing."""
    room = _LARGE_BYTES - len(data) - 20

    def many(one: str) -> str:
        return ",".join([one] * (room // (len(one) + 1)))

    kind = chance.randrange(6)
    if kind == 0:
        keys = ",".join(f'"key_{number}":{number}' for number in range(room // 24))
        return _into_environment(data, "many", "{" + keys + "}")
    if kind == 1:
        return re.sub(
            rb'"environment"\s*:\s*\{',
            lambda found: found[0] + (",".join(f'"k{number}":1' for number in range(room // 12)) + ",").encode(),
            data,
            count=1,
        )
    values = {2: many("1e-5"), 3: many("[]"), 4: many('"\\u0000"'), 5: '"' + "x" * (room - 10) + '"'}[kind]
    return _into_environment(data, "large", f"[{values}]")


_SMALL: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip_bits, _cut, _change_values, _change_values, _change_numbers, _lose_and_move, _say_twice, _nest, _repeat,
    _words,
)  # fmt: skip


def fuzzed_file(number: int) -> tuple[str, bytes]:
    """The kind and the bytes of a file; the same for a number every time."""
    chance = random.Random(number)
    data = chance.choice(FILES).read_bytes()
    change = _fill if number % LARGE_EVERY == LARGE_EVERY - 1 else chance.choice(_SMALL)
    return change.__name__.strip("_"), change(data, chance)


def try_files(numbers: range, found: Found, *, shown_every: int = 10) -> None:
    """Read files; what is accepted is exported, and one in so many is shown on its page."""
    for number in numbers:
        kind, data = fuzzed_file(number)
        begun = time.perf_counter()
        run: Run | None = None
        try:
            run = imports.read(data)
        except ValueError as error:
            said = str(error)
            if not said or "\n" in said or "Traceback" in said or len(said) > _MOST_SENTENCE:
                found.wrong.append(f"file {number} ({kind}): refused with no sentence: {said[:200]!r}")
        except BaseException as error:
            found.wrong.append(f"file {number} ({kind}): {type(error).__name__}: {error}"[:300])
        seconds = time.perf_counter() - begun
        found.note("files", f"{kind} {'refused' if run is None else 'accepted'}", seconds)
        if seconds > MOST_S:
            found.wrong.append(f"file {number} ({kind}) took {seconds:.1f} s")
        if run is not None:
            try:
                _use(run, shows=number % shown_every == 0)
            except Exception as error:
                found.wrong.append(f"file {number} ({kind}) was accepted: {type(error).__name__}: {error}"[:300])


def _use(run: Run, *, shows: bool) -> None:
    """What is done with an accepted run: kept, exported, shown."""
    assert encode(decode(encode(run))) == encode(run)
    export.markdown(run)
    export.table_csv(run)
    export.samples_csv(run)
    own = runner.shared()
    own.store.delete([run.id])
    own.store.add(run)
    if shows:
        page = "compare" if run.kind == "compare" else run.kind
        _calm(_page(page, {"run": run.id}))


# --- links -----------------------------------------------------------------------------------------------------------

_NAMES = (
    "run", "workload", "size_batch", "size_side", "dtype", "device", "strategies", "budget", "memory_limit", "threads",
    "seed", "baseline", "tab", "axis", "from", "to", "points", "scale", "axis_2", "from_2", "to_2", "claim", "claims",
    "question", "runs_text", "page", "", "__proto__", "option_model",
)  # fmt: skip
_GOOD = {
    "workload": ("square", "image_sqrt", "outer_product", "own"),
    "size_batch": ("1", "1000", "2147483647"),
    "strategies": ("all", "default", "loop.eager", "chunked.graph?chunk=8", "none", "map_fn.xla?element=by_hand"),
    "dtype": ("float32", "bfloat16"),
    "device": ("CPU:0", "GPU:7"),
    "budget": ("1", "1e400", "nan"),
    "axis": ("batch", "chunk"),
}


def fuzzed_link(number: int) -> tuple[str, dict[str, str | list[str]]]:
    """A page and the parameters of its address."""
    chance = random.Random(10**6 + number)

    def value(name: str) -> str:
        if name in _GOOD and chance.random() < 0.5:
            return chance.choice(_GOOD[name])
        odd = chance.choice(_ODD)
        text = odd if isinstance(odd, str) else json.dumps(odd)
        return text.replace("\x00", "")[:5_000]

    params: dict[str, str | list[str]] = {}
    for name in chance.sample(_NAMES, chance.randrange(1, 8)):
        params[name] = [value(name) for _ in range(chance.choice((2, 40)))] if chance.random() < 0.2 else value(name)
    return chance.choice(PAGES), params


def try_links(numbers: range, found: Found) -> None:
    for number in numbers:
        page, params = fuzzed_link(number)
        begun = time.perf_counter()
        try:
            _calm(_page(page, params))
        except Exception as error:
            found.wrong.append(f"link {number} ({page}): {type(error).__name__}: {error}"[:400])
        found.note("links", page, time.perf_counter() - begun)


def _page(page: str, params: dict[str, Any]) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    if page != "compare":
        app.switch_page(f"views/pages/{page}.py")
    for name, value in params.items():
        app.query_params[name] = value
    return app.run()


def _calm(app: AppTest) -> None:
    assert not app.exception, [each.message for each in app.exception]
    texts = [str(each.value) for kind in ("markdown", "warning", "error", "info", "caption") for each in app.get(kind)]
    assert not any("Traceback" in text for text in texts), "a traceback is on the page"


@contextlib.contextmanager
def pages(home: Path) -> Iterator[StoredRunner]:
    """The pages of a hosted server, with a store and nothing that measures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAPBENCH_HOSTED", "1")
        patch.setenv("MAPBENCH_HOME", str(home))
        own = StoredRunner(home)
        patch.setattr(runner, "shared", lambda: own)
        own.store.add(decode(FILES[0].read_bytes()))
        yield own
        own.store.close()


# --- requests --------------------------------------------------------------------------------------------------------


def fuzzed_request(number: int) -> dict[str, Any]:
    """The raw keys of a comparison, or of a sweep where there are ``axes``."""
    chance = random.Random(2 * 10**6 + number)
    workload = chance.choice(workloads.all())
    sizes = {parameter.name: parameter.default for parameter in workload.sizes}
    slugs = [strategy.slug for strategy in strategies.all_strategies(workload)]
    raw: dict[str, Any] = {
        "workload": workload.slug,
        "size": sizes,
        "strategies": chance.sample(slugs, min(len(slugs), chance.choice((1, 3, 100)))),
        "budget_s": chance.choice((1.0, 10.0, 30.0)),
    }
    if chance.random() < 0.3:
        values = chance.choice(([1, 10, 100], list(range(1, 200)), [10**9], [], ["a"], [-1, 0, 1]))
        raw["axes"] = [{"name": chance.choice([*sizes, "chunk", "x"]), "values": values}]
        sizes.pop(raw["axes"][0]["name"], None)
    for _ in range(chance.choice((0, 0, 0, 1, 1, 2, 5))):
        name = chance.choice(
            ("workload", "size", "strategies", "budget_s", "memory_limit_mib", "threads", "seed", "dtype", "device",
             "axes", "workload_options", "unknown")
        )  # fmt: skip
        raw[name] = chance.choice(_ODD)
    for name in sizes:
        if chance.random() < 0.1:
            sizes[name] = chance.choice((0, -1, 10**6, 2**31 - 1, 2**31, 2**70, "7", 1.5, None, True, 10**400))
    return raw


def _asked(raw: dict[str, Any]) -> Request | SweepRequest:
    return parse_sweep(raw) if "axes" in raw else parse(raw)


def try_requests(numbers: range, found: Found, home: Path) -> None:
    """Ask a runner of a hosted server, with subjects that measure nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAPBENCH_HOSTED", "1")
        subjects = Subjects()
        own = Runner(
            store_=Store(home), launcher_=subjects, settings=Settings(rules=QUICK, probes=False), name="a test"
        )
        try:
            for number in numbers:
                _try_request(own, subjects, number, found)
        finally:
            own.close()


def _try_request(own: Runner, subjects: Subjects, number: int, found: Found) -> None:
    started = len(subjects.specs)
    try:
        asked = _asked(fuzzed_request(number))
        run_id = own.submit_sweep(asked) if isinstance(asked, SweepRequest) else own.submit(asked)
    except RequestError as error:
        found.note("requests", "refused")
        said = str(error)
        if not said or "\n" in said or len(said) > _MOST_SENTENCE:
            found.wrong.append(f"request {number}: refused with no sentence: {said[:200]!r}")
        if len(subjects.specs) != started or own.queue():
            found.wrong.append(f"request {number} was refused and something was started")
    except Exception as error:
        found.wrong.append(f"request {number}: {type(error).__name__}: {error}"[:300])
    else:
        found.note("requests", "accepted")
        own.cancel(run_id)
        if not own.wait(run_id, 60.0):
            found.wrong.append(f"request {number} does not end when it is cancelled")
