"""Files of a person's own: one is all that adding something takes, and one that is broken costs only itself."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import strategies
import workloads
from measure import client
from measure.model import listing
from tests.deadlines import ANSWER_S
from tests.engine import ROOT
from tests.pages import FakeClient, words
from tests.strategies.test_strategies import EVERY_OTHER
from tests.workloads.test_workloads import CUBE
from workloads import functions
from workloads.case import Case
from workloads.discovery import DiscoveryError
from workloads.spec import Leaf


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a folder for workloads and one for mappers."""
    for name in ("workloads", "mappers"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    return tmp_path


def test_one_setting_turns_them_off_where_strangers_come(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "workloads" / "cube.py").write_text(f"raise AssertionError('it is executed')\n{CUBE}")
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    assert "cube" not in workloads.names() and workloads.broken() == {}
    with pytest.raises(DiscoveryError, match="MAPBENCH_HOSTED is set"):
        workloads.in_file(home / "workloads" / "cube.py")
    monkeypatch.setenv("MAPBENCH_HOSTED", "0")
    assert "it is executed" in next(iter(workloads.broken().values()))


BROKEN = {
    "exits": ("import sys\nsys.exit(3)", "cannot be loaded: SystemExit: 3 (line 2)"),
    "fails_at_its_most": (
        CUBE.replace("def cost():", "def cost(batch):\n    assert batch < 100, 'too many'"),
        "cube: cost(batch=100) fails: AssertionError: too many",
    ),
    "mine": ("WORKLOAD = squares", "cannot be loaded: NameError: name 'squares' is not defined (line 1)"),
}


def test_they_are_offered_and_broken_ones_are_said_on_the_page_and_in_the_list(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, (text, _) in BROKEN.items():
        (home / "workloads" / f"{name}.py").write_text(text)
    (home / "workloads" / "cube.py").write_text(CUBE)
    (home / "mappers" / "through_dataset.py").write_text(EVERY_OTHER)
    assert workloads.names()[-1] == "cube"
    assert strategies.mapper("through_dataset").modes == ("eager", "graph")
    expected = {f"{home}/workloads/{name}.py": says for name, (_, says) in BROKEN.items()}
    assert listing.broken() == {
        path: f"{path}{':' if says.startswith('cube') else ''} {says}" for path, says in expected.items()
    }
    (home / "workloads" / "cube.py").write_text(CUBE.replace("def cost():", "def cost(batch):\n    1 / (batch - 3)"))
    with pytest.raises(DiscoveryError, match=r"^cube: cost\(batch=3\) fails: ZeroDivisionError: division by zero$"):
        _ = Case(workloads.get("cube"), {"batch": 3}, "float32").cost
    fake = FakeClient()
    monkeypatch.setattr(client, "shared", lambda: fake)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=ANSWER_S)
    app.query_params["workload"] = "cube"
    app.run()
    assert not app.exception and not app.error
    assert f"mine.py {BROKEN['mine'][1]}" in words(app) and "Cube" in words(app)
    assert {"loop.eager", "through_dataset.graph"} <= {box.label for box in app.checkbox}


def test_tuples_named_ones_lists_and_dicts_of_leaves_can_be_told_apart() -> None:
    leaf = Leaf((3,), "float32")
    nest = {"pair": (leaf, [leaf, leaf]), "names": {"shape": leaf, "dtype": leaf}, "one": functions.Named((leaf,))}
    again = functions.leaves_from_wire(functions.leaves_to_wire(nest))
    assert (
        again == nest and isinstance(again["one"], functions.Named) and not isinstance(again["pair"], functions.Named)
    )
