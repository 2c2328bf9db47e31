"""Several element functions of one workload: an option of its strategies, so that they compete in one run."""

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import strategies
import workloads
from measure import runner
from measure.engine.bench import Settings
from measure.engine.host_launcher import HostLauncher
from measure.model import listing
from measure.model.request import RequestError, case_of, parse
from measure.model.run_file import decode, encode
from measure.sweep.request import parse_sweep
from strategies import script
from strategies.spec import Strategy
from tests.engine import DEADLINE_S, ROOT, running
from tests.grid import untimed
from tests.pages import FakeRunner, StoredRunner, words
from tests.strategies.test_strategies import EVERY_OTHER
from tests.subjects import Subjects
from tests.test_docs import blocks
from workloads.discovery import DiscoveryError

SLOPE = blocks(ROOT / "docs/extending.md", "python")[1]
BY_HAND = "map_fn.graph?element=by_hand"


@pytest.fixture
def slope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the documentation, in a home of its own."""
    (tmp_path / "workloads").mkdir()
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    path = tmp_path / "workloads" / "slope.py"
    path.write_text(SLOPE)
    return path


def chosen(text: str) -> tuple[str, ...]:
    return parse({"workload": "slope", "strategies": text}).strategies


def test_a_slug_names_one_beside_other_options() -> None:
    slug = "chunked.graph?chunk=8&element=by_hand"
    assert strategies.parse("chunked.graph?element=by_hand&chunk=8").slug == slug
    assert strategies.parse(slug) == Strategy("chunked", "graph", {"chunk": 8, "element": "by_hand"})
    for wrong, says in (
        ("map_fn.graph?element=By hand", "map_fn: element 'By hand' is not valid: small letters, digits and _ are"),
        ("map_fn.graph?element=a&element=b", "gives element twice"),
        ("batched.graph?element=by_hand", "batched has no option 'element': it has none"),
        ("numpy.eager?element=by_hand", "numpy has no option 'element': it has none"),
    ):
        with pytest.raises(strategies.StrategyError, match=re.escape(says)):
            strategies.parse(wrong)


def test_it_is_valid_for_a_workload_that_has_it(slope: Path) -> None:
    assert chosen(f"{BY_HAND},map_fn.graph") == (BY_HAND, "map_fn.graph")
    says = "map_fn needs an element function 'by_foot', which slope does not have: it has by_hand"
    with pytest.raises(RequestError, match=f"^{says}$"):
        chosen("map_fn.graph?element=by_foot")
    with pytest.raises(RequestError, match=r"^map_fn needs an element function 'by_hand', which square does not have$"):
        parse({"workload": "square", "strategies": BY_HAND})
    assert "    ?element=by_hand  written in another way" in listing.lines(["CPU:0"])


def test_words_stand_for_all_of_them_and_the_default_for_one(slope: Path) -> None:
    assert chosen("map_fn") == (
        *(f"map_fn.{mode}" for mode in ("eager", "graph", "xla")),
        *(f"map_fn.{mode}?element=by_hand" for mode in ("eager", "graph", "xla")),
    )
    assert {BY_HAND, "map_fn.graph"} <= set(chosen("graph")) & set(chosen("all"))
    assert not [slug for slug in chosen("default") if "element" in slug]


def test_its_script_holds_the_function_that_it_maps(slope: Path) -> None:
    case = case_of(parse({"workload": "slope"}))
    ours, theirs = (script.build(case, slug) for slug in (BY_HAND, "map_fn.graph"))
    assert "def by_hand(x):" in ours and "def by_gradient_tape" not in ours
    assert "(by_hand, elems" in ours
    assert "def by_hand" not in theirs and "(by_gradient_tape, elems" in theirs


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            '{"by_hand": by_hand}',
            '{"By hand": by_hand}',
            "slope: element function 'By hand' is not valid: small letters",
        ),
        ('{"by_hand": by_hand}', '{"by_hand": lambda x: x}', "cannot be put into a script: a top-level 'def' can"),
        ("def by_hand(x):", "def by_hand(x, *, angle):", "slope: by_hand asks for 'angle': it can have batch, width"),
    ],
)
def test_one_that_is_not_valid_is_refused_in_a_sentence(slope: Path, old: str, new: str, says: str) -> None:
    slope.write_text(SLOPE.replace(old, new))
    with pytest.raises(DiscoveryError, match=re.escape(says)):
        workloads.in_file(slope)


def test_a_mapper_has_no_other_option_of_that_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    option = 'options=(Option("element", 1, "which"),), order=15'
    path.write_text(EVERY_OTHER.replace("order=15", option).replace("import Estimate", "import Option, Estimate"))
    with pytest.raises(ValueError, match="an option is named 'element', which is every mapper's"):
        strategies.load_file(path)


def test_each_has_a_row_on_the_page(slope: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeRunner()
    monkeypatch.setattr(runner, "shared", lambda: fake)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.query_params["workload"] = "slope"
    app.query_params["strategies"] = ["map_fn.graph", BY_HAND]
    app.run()
    assert not [*app.exception, *app.error, *app.warning]
    assert {box.label for box in app.checkbox if box.value} == {"map_fn.graph", BY_HAND}
    app.button(key="row_map_fn_element_by_hand").click().run()
    app.button(key="run").click().run()
    assert fake.submitted[0].strategies == (
        "map_fn.graph", *(f"map_fn.{mode}?element=by_hand" for mode in ("eager", "graph", "xla"))
    )  # fmt: skip


def test_they_compete_in_runs_that_open_elsewhere(slope: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = {"workload": "slope", "strategies": f"loop.eager,map_fn.graph,{BY_HAND}"}
    home, another = slope.parent.parent, slope.parent.parent / "another"
    with running(Subjects(latencies_s={BY_HAND: 0.001}), home) as measuring:
        axes = [{"kind": "size", "name": "batch", "values": [4, 8, 16]}]
        ids = [measuring.submit(parse(raw)), measuring.submit_sweep(parse_sweep({**raw, "axes": axes}))]
        assert all(measuring.wait(run_id, DEADLINE_S) for run_id in ids)
        runs = [snapshot.run for run_id in ids if (snapshot := measuring.snapshot(run_id))]
    assert [run.status for run in runs] == ["complete", "complete"]
    assert runs[0].ranking[0] == [BY_HAND]

    slope.unlink()
    monkeypatch.setenv("MAPBENCH_HOME", str(another))
    fake = StoredRunner(another)
    monkeypatch.setattr(runner, "shared", lambda: fake)
    for run in runs:
        fake.store.add(decode(encode(run)))
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app.query_params["run"] = run.id
        app.run()
        assert not app.exception and not app.error
        assert run.verdict in words(app) and BY_HAND in words(app)


def test_each_is_measured_and_checked(slope: Path, host: HostLauncher) -> None:
    wrong = SLOPE.replace("return 2 * y * (1 - y * y)\n\n\ndef reference", "return 2 * y\n\n\ndef reference")
    assert wrong != SLOPE
    slope.write_text(wrong)
    chosen_here = ["map_fn.graph", BY_HAND, "vectorized_map.xla", "vectorized_map.xla?element=by_hand"]
    run = untimed(parse({"workload": "slope", "strategies": chosen_here}), host, Settings(timeout_floor_s=60.0))
    right = {item.strategy: item.correctness and item.correctness.ok for item in run.measurements}
    assert right == dict(zip(chosen_here, (True, False, True, False), strict=True))
