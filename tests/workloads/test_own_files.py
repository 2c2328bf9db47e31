"""Files of a person's own: one is all that adding something takes, and one that is broken costs only itself."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

import workloads
from measure import client
from measure.run import listing
from strategies import script
from tests.engine import running
from tests.pages import open_page, words
from tests.strategies.test_strategies import EVERY_OTHER
from tests.subjects import Subjects
from tests.workloads.test_workloads import CUBE
from workloads import descriptions
from workloads.case import Case
from workloads.discovery import DiscoveryError
from workloads.spec import Workload


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a folder for workloads and one for mappers."""
    for name in ("workloads", "mappers"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    return tmp_path


def test_one_setting_turns_them_off_where_strangers_come(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not descriptions.have_changed(), "there are none"
    (home / "workloads" / "cube.py").write_text(f"raise AssertionError('it is executed')\n{CUBE}")
    assert descriptions.have_changed()
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    assert "cube" not in workloads.names() and workloads.broken() == {}
    with pytest.raises(DiscoveryError, match="MAPBENCH_HOSTED is set"):
        workloads.in_file(home / "workloads" / "cube.py")
    monkeypatch.setenv("MAPBENCH_HOSTED", "0")
    assert "it is executed" in next(iter(workloads.broken().values()))


BROKEN = {
    "exits": ("import sys\nsys.exit(3)", "cannot be loaded: SystemExit: 3 (line 2)"),
    "fails": (
        CUBE.replace("def cost():", "def cost(batch):\n    assert batch < 4, 'too many'"),
        "cube: cost(batch=4) fails: AssertionError: too many",
    ),
    "mine": ("WORKLOAD = squares", "cannot be loaded: NameError: name 'squares' is not defined (line 1)"),
}


def test_who_measures_executes_them_and_pages_know_them_from_its_row_in_the_store(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Executed anywhere but where the worker is, each of them would be broken.
    measures = "import os\n\nos.environ['WHO_MEASURES']\n\n"
    monkeypatch.setenv("WHO_MEASURES", "1")
    for name, (text, _) in BROKEN.items():
        (home / "workloads" / f"{name}.py").write_text(text)
    cube, mapper = home / "workloads" / "cube.py", home / "mappers" / "through_dataset.py"
    cube.write_text(measures + CUBE)
    mapper.write_text(measures + EVERY_OTHER)
    assert workloads.names()[-1] == "cube"
    case = Case(workloads.get("cube"), {"batch": 50}, "float32")
    written = script.build(case, "through_dataset.graph")
    broken = listing.broken()
    assert broken == {
        f"{home}/workloads/{name}.py": f"{home}/workloads/{name}.py{':' if says.startswith('cube') else ''} {says}"
        for name, (_, says) in BROKEN.items()
    }
    with running(Subjects(), home) as own:
        monkeypatch.delenv("WHO_MEASURES")
        for path in (cube, mapper):
            path.write_text(f"{path.read_text()}\n# changed\n")
        monkeypatch.setattr(client, "shared", lambda: own.client)
        app = open_page(workload="cube")
    assert f"mine.py {BROKEN['mine'][1]}" in words(app) and "Cube" in words(app)
    assert {"loop.eager", "through_dataset.graph"} <= {box.label for box in app.checkbox}
    assert listing.broken() == broken
    assert script.build(replace(case, workload=workloads.get("cube")), "through_dataset.graph") == written


@pytest.mark.parametrize("slug", ["augment", "cholesky", "ragged_in", "top_k"])
def test_described_as_data_a_workload_has_its_shapes_at_every_size_and_its_scripts(slug: str) -> None:
    item = workloads.get(slug)
    again = descriptions.of_data(descriptions.described(item), Workload)
    names = ("slug", "sizes", "presets", "dtypes", "options", "unsupported")
    assert [getattr(again, name) for name in names] == [getattr(item, name) for name in names]
    sizes = [item.default_size(), *({**item.default_size(), **size} for size in item.presets.values())]
    chosen = [{}, *({name: value} for name, by_value in item.variants.items() for value in by_value)]
    for dtype, size, options in itertools.product(item.dtypes, sizes, chosen):
        case, shown = (Case(one, size, dtype, options) for one in (item, again))
        for name in ("input_bytes", "output", "captured_bytes"):
            assert getattr(case, name) == getattr(shown, name)
        # Sums of several powers are forecast within a factor of two.
        for name in ("ops", "flops", "temporary_bytes"):
            right, forecast = getattr(case.cost, name), getattr(shown.cost, name)
            assert right / 2 <= forecast <= 2 * right, (name, size)
        assert script.build(shown, "map_fn.graph") == script.build(case, "map_fn.graph")
        assert script.build_reference(shown) == script.build_reference(case)
