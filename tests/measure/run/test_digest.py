"""The digests of run files: what is not as it was written is noticed, and it is said where."""

import json
import random
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from measure.output import export
from measure.run.encoding import decode, encode
from measure.run.run import Run
from measure.store import imports

DATA = Path(__file__).parents[2] / "data"
FLIPS = 100


def written(name: str) -> bytes:
    """A file of former times as it would be written today."""
    return encode(replace(decode((DATA / f"{name}.json").read_bytes()), digest={}))


def places(run: Run) -> list[str]:
    """The paths of what is not as it was written."""
    return [path for warning in run.warnings if warning.code == "changed" for path in warning.values["paths"]]


def test_every_bit_that_is_flipped_is_refused_or_noticed():
    data = written("run_1")
    whole, chosen = imports.read(data), random.Random(0)
    passed = []
    for _ in range(FLIPS):
        place, bit = chosen.randrange(len(data)), 1 << chosen.randrange(8)
        flipped = data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :]
        try:
            run = imports.read(flipped)
        except ValueError:
            continue
        # The last of 17 digits may make no other number, and E is e.
        if run != whole and not places(run):
            passed.append((place, bit))
    assert passed == []


def changed(name: str, change: Any) -> Run:
    raw = json.loads(written(name))
    change(raw)
    return imports.read(json.dumps(raw).encode())


def test_it_is_said_which_part_is_not_as_it_was_written_wherever_the_run_goes():
    assert places(changed("run_1", lambda raw: None)) == [], "another program has written it anew"
    for name, change, where in (
        ("run_1", lambda raw: raw.update(verdict="loop.eager is fastest"), "$.verdict"),
        ("run_1", lambda raw: raw["measurements"][1].update(first_call_s=0.25), "$.measurements[1]"),
        ("sweep_1", lambda raw: raw["points"][2].update(reason="so"), "$.points[2]"),
        ("sweep_1", lambda raw: raw["points"].pop(), None),
        ("run_1", lambda raw: raw["digest"].update(verdict="0" * 16), "$.verdict"),
    ):
        run = changed(name, change)
        assert places(run) == [where or f"$.points[{len(run.points)}]"]
        assert "no longer matches its checksum" in export.markdown(run) and places(decode(encode(run))) == places(run)
