"""The digests of run files: what is not as it was written is noticed, and it is said where."""

import functools
import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from measure.model import why
from measure.model.run import Run
from measure.model.run_file import decode, encode
from measure.output import export
from measure.store import imports
from measure.store.store import Store
from tests import synthetic
from tests.engine import measure, running, small_request
from tests.subjects import Subjects

DATA = Path(__file__).parents[2] / "data"
FILES = ["run_1", "sweep_1", "map_1", "option_1", "explained_1"]
FLIPS = 250


@functools.cache
def written(name: str) -> bytes:
    """A file of former times as it would be written today."""
    return encode(replace(decode((DATA / f"{name}.json").read_bytes()), digest={}))


def codes(run: Run) -> list[str]:
    return [warning.code for warning in run.warnings]


def places(run: Run) -> list[str]:
    (warning,) = (warning for warning in run.warnings if warning.code == "changed")
    return warning.values["paths"]


@pytest.mark.parametrize("name", FILES)
def test_every_bit_that_is_flipped_is_refused_or_noticed(name: str):
    data = written(name)
    whole, chosen = imports.read(data), random.Random(name)
    assert "changed" not in codes(whole)
    passed = []
    for _ in range(FLIPS):
        place, bit = chosen.randrange(len(data)), 1 << chosen.randrange(8)
        flipped = data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :]
        try:
            run = imports.read(flipped)
        except ValueError:
            continue
        # The last of 17 digits may make no other number, and E is e.
        if run != whole and "changed" not in codes(run):
            passed.append((place, bit))
    assert passed == []


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_former_times_has_no_digest_and_is_written_without_one(name: str):
    run = decode((DATA / f"{name}.json").read_bytes())
    assert "changed" not in codes(run) and b"digest" not in encode(run)


def changed(name: str, change: Any) -> Run:
    raw = json.loads(written(name))
    change(raw)
    return imports.read(json.dumps(raw).encode())


def test_a_file_that_another_program_has_written_anew_is_the_same():
    assert codes(changed("run_1", lambda raw: None)) == codes(imports.read(written("run_1")))


@pytest.mark.parametrize(
    ("name", "change", "where"),
    [
        ("run_1", lambda raw: raw.update(verdict="loop.eager is fastest"), ["$.verdict"]),
        ("run_1", lambda raw: raw["environment"].update(cpu_model="Z80"), ["$.environment"]),
        ("run_1", lambda raw: raw["measurements"][1].update(first_call_s=0.25), ["$.measurements[1]"]),
        ("sweep_1", lambda raw: raw["points"][2].update(reason="so"), ["$.points[2]"]),
        ("sweep_1", lambda raw: raw["points"].pop(), None),
        ("run_1", lambda raw: raw.pop("stop_reason"), ["$.stop_reason"]),
        ("run_1", lambda raw: raw["digest"].update(verdict="0" * 16), ["$.verdict"]),
    ],
)
def test_it_is_said_which_part_is_not_as_it_was_written(name: str, change: Any, where: list[str] | None):
    run = changed(name, change)
    assert places(run) == (where or [f"$.points[{len(run.points)}]"])
    assert "no longer matches its checksum" in export.markdown(run), "and it is in what is exported of it"


def test_that_a_file_was_changed_stays_with_the_run(tmp_path: Path):
    run = changed("run_1", lambda raw: raw.update(verdict="loop.eager is fastest"))
    kept = Store(tmp_path)
    assert kept.add(run)
    again = imports.read(encode(kept.load(run.id)))
    assert codes(again).count("changed") == 1 and places(again) == ["$.verdict"]


def test_a_run_that_is_measured_and_then_explained_has_digests_that_match(tmp_path: Path):
    kept = Store(tmp_path)
    with running(Subjects(), tmp_path, kept) as own:
        run = measure(own, small_request("batched.eager", "loop.eager"))
    data = encode(kept.load(run.id))
    assert len(msgspec.json.decode(data)["digest"]["measurements"]) == len(run.measurements)
    assert imports.read(data) == run
    assert kept.explain(run.id, "batched.eager", why.Explained(note="now"), {})
    later = encode(kept.load(run.id))
    assert later != data and codes(imports.read(later)) == codes(run)


@pytest.mark.parametrize("make", [synthetic.run, synthetic.sweep])
def test_runs_of_every_kind_come_back_as_they_were_written(make: Any):
    run = replace(make("0123456789abcdef01234567"), digest={})
    assert decode(encode(run)) == run
