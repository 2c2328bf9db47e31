"""The Claims page without a browser and without TensorFlow: verdicts, trying, evidence, and what changed."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure import runner
from measure.admission import NOBODY, Visitor
from measure.claims import known, verdicts
from measure.claims.predicates import Figure
from measure.claims.spec import Claim, Said, Script
from measure.engine.launcher import HostState
from measure.judge import advice
from measure.machine import environment
from measure.model.run import Evidence, Run
from measure.model.run_file import decode
from measure.model.script_end import ScriptEnd
from measure.runner import Snapshot
from tests import synthetic
from tests.engine import ROOT
from tests.pages import StoredRunner, calm, versions, words
from views.pages import newest, texts
from views.ui.memo import Memo

_SCRIPT = Script("report(count=3)", seconds=7.0)
_OTHER = Script("report(count=4)", seconds=5.0)
CLAIMS = {
    claim.id: claim
    for claim in (
        Claim(
            "three", "speed", "There are `three` <b>of them</b>.", (Said("seed 1", "a part"),),
            (Figure(_SCRIPT, "count", "{value} were counted", least=3, most=3),), note="Counted by hand.",
        ),
        Claim(
            "four", "tracing", "There are four.", (Said("thread", "https://example.org/thread"),),
            (Figure(_OTHER, "count", "{value} were counted", least=4, most=4),),
        ),
        Claim("both", "tracing", "There are three and four.", (), (Figure(_OTHER, "count", "{value}", least=9),)),
    )
}  # fmt: skip

# A claim that needs both of what the others need.
PAIR = Claim("pair", "limits", "There are three, and four.", (), (
    Figure(_SCRIPT, "count", "{value} were counted first", least=3, most=3),
    Figure(_OTHER, "count", "{value} were counted second", least=4, most=4),
))  # fmt: skip


def run_of(number: int, count: float | None, claims: Sequence[str] = ("three",), **changes: object) -> Run:
    """A run of claims in which the script of «three» counted so many, or failed."""
    end = ScriptEnd(source=_SCRIPT.source, figures={} if count is None else {"count": count}, printed="done",
                    error="" if count is not None else "line 1: ZeroDivisionError", seconds=2.0)  # fmt: skip
    base = synthetic.run(f"{number:024x}", unhappy=False)
    run = replace(
        base, kind="claims", measurements=[], ranking=[], limit=None, control=None, warnings=[], verdict="Of 1 claims",
        request=replace(base.request, workload="claims", size={}, strategies=[]),
        created=f"2025-01-15T09:{number:02d}:00Z", claims=list(claims),
        evidence=[Evidence(need=_SCRIPT.key, script=end)],
    )  # fmt: skip
    return replace(run, **changes)


def counted(**counts: float) -> list[Evidence]:
    """Evidence in which the scripts of «three» and «four» counted so many."""
    of = {"three": _SCRIPT, "four": _OTHER}
    ends = {name: ScriptEnd(source=of[name].source, figures={"count": count}) for name, count in counts.items()}
    return [Evidence(need=of[name].key, script=end) for name, end in ends.items()]


def example() -> Run:
    return decode((ROOT / "views/example_claims.json").read_bytes())


class TryingRunner(StoredRunner):
    """A runner that remembers which claims it was asked to try."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.tried: list[tuple[str, ...]] = []

    def submit_claims(self, ids: Sequence[str] = (), parent: str | None = None, visitor: Visitor = NOBODY) -> str:
        self.tried.append(tuple(ids))
        run = run_of(59, 3, ids, evidence=[], finished=None)
        self.snapshots[run.id] = Snapshot(run, "running", version=1, message="1 of 1: a script of its own")
        return run.id


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TryingRunner:
    fake = TryingRunner(tmp_path)
    monkeypatch.setattr(runner, "shared", lambda: fake)
    monkeypatch.setattr(known, "all_claims", lambda: tuple(CLAIMS.values()))
    monkeypatch.setattr(known, "get", CLAIMS.get)
    # What is remembered of runs, which have the same ids in all of these tests.
    monkeypatch.setattr(newest, "_outlines", Memo(str(tmp_path)))
    return fake


@pytest.fixture
def visit(fake: TryingRunner) -> Callable[..., AppTest]:
    def open_page(**query: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app = calm(app.run())
        app.query_params.update(query)
        return calm(app.switch_page("views/pages/claims.py").run())

    return open_page


def test_a_first_visitor_sees_verdicts_that_were_measured_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fake = TryingRunner(tmp_path)
    monkeypatch.setattr(runner, "shared", lambda: fake)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app = calm(calm(app.run()).switch_page("views/pages/claims.py").run())
    said, facts = words(app), example().environment
    assert "An example, measured before." in said and f"TensorFlow {facts['tensorflow']}" in said
    assert facts["cpu_model"] and facts["cpu_model"] in said, "whose verdicts these are"
    judged = {button.key.removeprefix("open_") for button in app.button if button.key.startswith("open_")}
    assert judged <= {claim.id for claim in known.all_claims()} and len(judged) >= 40
    assert not app.selectbox, "the example is no run to compare others with"


def test_the_example_has_a_verdict_on_every_claim_that_needs_no_gpu():
    run = example()
    there = {item.need for item in run.evidence or []}
    claims = [claim for claim in known.all_claims() if not claim.needs_gpu]
    assert [claim.id for claim in claims if not all(need.key in there for need in claim.needs)] == []
    found = {claim.id: verdicts.of_run(claim, run) for claim in claims}
    # Where one needs more than there was, that is said of the machine, and not of the claim.
    assert [name for name, verdict in found.items() if verdict.word == "cannot be tried here"] == []
    assert sum(verdict.word in ("holds", "does not hold", "depends") for verdict in found.values()) >= 40


def test_the_newest_verdict_on_each_claim_is_shown_and_what_trying_takes(
    visit: Callable[..., AppTest], fake: TryingRunner
):
    fake.store.add(run_of(1, 5))
    fake.store.save(run_of(2, 3))
    fake.store.save(run_of(3, None, ["of another version"], evidence=[Evidence(need="of another version")]))
    app = visit()
    said = words(app)
    assert "holds" in said and "3 were counted" in said and "5 were counted" not in said
    assert "not tried here yet" in said
    assert "There are <code" in said and "&lt;b&gt;of them" in said, "texts stay texts"
    assert app.button(key="try_all").label == "Try all 3 (about 12 s)"
    assert app.button(key="try_rest").label == "Try the 2 that are not tried yet (about 5 s)"
    assert app.button(key="try_tracing").label == "Try these 2 (5 s)"
    assert app.button(key="try_three").label == "Again (7 s)"
    app = calm(app.button_group(key="claims_filter").set_value([None]).run())
    assert "3 were counted" not in words(app) and "There are four." in words(app)


@pytest.mark.parametrize("ended", [True, False])
def test_a_run_of_all_that_was_cancelled_or_goes_on_hides_no_earlier_verdict(
    visit: Callable[..., AppTest], fake: TryingRunner, ended: bool
):
    fake.store.save(run_of(1, 3))
    began = run_of(2, None, ["three", "four", "both"], evidence=counted(four=4), status="cancelled")
    fake.store.save(began if ended else replace(began, finished=None), live=not ended)
    said = words(visit())
    assert "3 were counted" in said and "4 were counted" in said, "what was measured before, and what is already"
    assert "not measured" not in said and "not tried here yet" not in said


def test_all_figures_of_an_earlier_run_count_more_than_some_of_a_later_one(
    visit: Callable[..., AppTest], fake: TryingRunner, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(known, "all_claims", lambda: (PAIR,))
    fake.store.save(run_of(2, None, ["pair"], evidence=counted(three=5), status="cancelled"))
    fake.store.save(run_of(3, None, ["pair"], evidence=counted(four=6), finished=None), live=True)
    said = words(visit())
    assert "5 were counted first; it was not measured" in said, "some figures are better than none"
    assert "6 were counted" not in said, "nothing is said of a claim while it is measured"
    fake.store.save(run_of(1, None, ["pair"], evidence=counted(three=3, four=4)))
    assert "3 were counted first; 4 were counted second" in words(visit())


def test_many_runs_of_single_claims_do_not_hide_one_of_all(visit: Callable[..., AppTest], fake: TryingRunner):
    fake.store.save(run_of(1, None, list(CLAIMS), evidence=counted(three=3, four=4)))
    for number in range(2, 58):
        fake.store.save(run_of(number, None, ["four"], evidence=counted(four=number + 100)))
    said = words(visit())
    assert "3 were counted" in said and "157 were counted" in said and "not tried here yet" not in said


def test_runs_from_elsewhere_are_no_verdicts_of_this_machine_and_hide_none(
    visit: Callable[..., AppTest], fake: TryingRunner, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(newest, "_MOST_READ", 1)
    fake.store.save(run_of(1, 3))
    for number in range(2, 34):
        fake.store.add(run_of(number, None, ["three", "four"], evidence=counted(three=8, four=9)))
    app = visit()
    said = words(app)
    assert "3 were counted" in said and "8 were counted" not in said
    assert "9 were counted" not in said and app.button(key="try_rest").label.startswith("Try the 2")
    # On a server that measures nothing, runs from elsewhere are all that there is.
    monkeypatch.setenv("MAPBENCH_VIEWER", "1")
    said = words(visit())
    assert "8 were counted" in said and "9 were counted" in said and "3 were counted" not in said


def test_no_more_runs_are_looked_through_than_it_takes(
    visit: Callable[..., AppTest], fake: TryingRunner, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(newest, "_MOST_READ", 2)
    fake.store.save(run_of(1, 3))
    for number in (2, 3):
        fake.store.save(run_of(number, None, ["four"], evidence=counted(four=4)))
    assert "3 were counted" not in words(visit())
    monkeypatch.setattr(newest, "_MOST_READ", 3)
    assert "3 were counted" in words(visit())


@pytest.mark.parametrize(
    ("then", "mark"),
    [({}, ""), ({"tensorflow": "2.15.0"}, "Tried with TensorFlow 2.15.0, 2025-01-15"),
     ({"cpu_model": "An older one"}, "Tried on another machine, 2025-01-15"),
     ({"cpu_model": "An older one", "tensorflow": "2.15.0"},
      "Tried on another machine, with TensorFlow 2.15.0, 2025-01-15"),
     ({"cpu_model": None, "gpus": None, "tensorflow": None}, ""), ({"memory_available_bytes": 1}, "")],
)  # fmt: skip
def test_a_verdict_of_another_machine_or_version_is_marked(
    visit: Callable[..., AppTest], fake: TryingRunner, monkeypatch: pytest.MonkeyPatch,
    then: Mapping[str, Any], mark: str,
):  # fmt: skip
    run = run_of(2, 3)
    now = {**run.environment, "cpu_model": "This one", "tensorflow": "2.21.0", "gpus": []}
    monkeypatch.setattr(environment, "collect", lambda **_: now)
    # The page remembers what it has read of a machine.
    fake.state = HostState("ready", "", ("CPU:0",), {"of this test": next(versions)})
    fake.store.save(replace(run, environment={**now, **then}))
    said = words(visit())
    assert "3 were counted" in said
    assert mark in said if mark else "Tried " not in said


@pytest.mark.parametrize(
    ("key", "ids"),
    [("try_all", ("three", "four", "both")), ("try_rest", ("four", "both")), ("try_tracing", ("four", "both")),
     ("try_four", ("four",))],
)  # fmt: skip
def test_one_claim_a_group_or_all_are_tried(
    visit: Callable[..., AppTest], fake: TryingRunner, key: str, ids: tuple[str, ...]
):
    fake.store.save(run_of(2, 3))
    app = calm(visit().button(key=key).click().run())
    assert fake.tried == [ids]
    assert app.query_params["run"] == f"{59:024x}"
    assert "1 of 1: a script of its own" in words(app).replace("\\", "")
    assert [button for button in app.button if button.key == "cancel"]


def test_what_cannot_be_tried_in_time_on_a_hosted_server_is_said_where_its_button_is(
    visit: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MAPBENCH_SWEEP_S", "10")
    app = visit()
    assert app.button(key="try_all").disabled and not app.button(key="try_tracing").disabled
    said = "This cannot end in time: it takes about 12.0 s by forecast, and such a run ends after 10.0 s; try "
    assert f"{said}«What is fast?» or «What is traced and compiled, and when?» by itself." in words(app)


@pytest.mark.parametrize(
    ("count", "word", "seen"),
    [(3, "holds", "3 were counted"), (8, "does not hold", "8 were counted"),
     (None, "cannot tell", "its script failed: line 1: ZeroDivisionError")],
)  # fmt: skip
def test_a_claim_is_shown_with_its_evidence(
    visit: Callable[..., AppTest], fake: TryingRunner, count: int | None, word: str, seen: str
):
    fake.store.save(run_of(2, count))
    app = calm(visit(run=f"{2:024x}").button(key="open_three").click().run())
    said = words(app)
    assert word in said and seen.replace(":", "") in said.replace(":", "").replace("\\", "")
    assert "an article on making tf.map" in said.replace("\\", "") and "Counted by hand" in said
    assert _SCRIPT.source in [code.value for code in app.code]
    app = calm(app.button(key="try_this").click().run())
    assert fake.tried == [("three",)]


def test_a_run_with_claims_that_are_not_known_here_says_so(visit: Callable[..., AppTest], fake: TryingRunner):
    fake.store.add(run_of(2, 3, ["three", "of another version"]))
    said = words(visit(run=f"{2:024x}")).replace("\\", "")
    assert "This run holds claims that are not known here: of another version." in said
    assert "Of 2 claims 1 holds and 1 is not known here" in said


def test_what_is_to_be_known_of_a_run_as_a_whole_is_said(visit: Callable[..., AppTest], fake: TryingRunner):
    fake.store.add(run_of(2, 3, warnings=[advice.stood_still(20.0)]))
    assert "Measuring stood still for about 20" in words(visit(run=f"{2:024x}"))


def test_verdicts_that_changed_stand_in_a_table(visit: Callable[..., AppTest], fake: TryingRunner):
    earlier = run_of(1, 5)
    fake.store.add(replace(earlier, environment={**earlier.environment, "tensorflow": "2.15.0"}))
    fake.store.save(run_of(2, 3))
    app = visit()
    app = calm(app.selectbox(key="claims_against").select_index(0).run())
    (row,) = app.dataframe[0].value.to_dict("records")
    assert (row[texts.THEN_COLUMN], row[texts.NOW_COLUMN]) == ("does not hold", "holds")
    assert "2.15.0 then" in words(app).replace("\\", "")


def test_what_differs_is_that_of_the_run_of_each_verdict(visit: Callable[..., AppTest], fake: TryingRunner):
    def with_version(run: Run, version: str) -> Run:
        return replace(run, environment={**run.environment, "tensorflow": version})

    fake.store.add(with_version(run_of(1, None, list(CLAIMS), evidence=counted(three=5, four=5)), "2.15.0"))
    fake.store.save(with_version(run_of(2, None, ["three"], evidence=counted(three=3)), "2.20.0"))
    fake.store.save(with_version(run_of(3, None, ["four"], evidence=counted(four=4)), "2.21.0"))
    app = visit()
    app = calm(app.selectbox(key="claims_against").select(f"{1:024x}").run())
    told = {row[texts.CLAIM_COLUMN]: row[texts.FACTS_COLUMN] for row in app.dataframe[0].value.to_dict("records")}
    assert told == {
        "There are three <b>of them</b>.": "TensorFlow: 2.15.0 then, 2.20.0 now",
        "There are four.": "TensorFlow: 2.15.0 then, 2.21.0 now",
    }


def test_what_a_run_did_not_measure_has_not_changed(visit: Callable[..., AppTest], fake: TryingRunner):
    fake.store.add(run_of(1, None, list(CLAIMS), evidence=counted(four=5), status="cancelled"))
    fake.store.save(run_of(2, None, list(CLAIMS), evidence=counted(three=3, four=4)))
    app = visit()
    app = calm(app.selectbox(key="claims_against").select(f"{1:024x}").run())
    (row,) = app.dataframe[0].value.to_dict("records")
    assert (row[texts.CLAIM_COLUMN], row[texts.THEN_COLUMN]) == ("There are four.", "does not hold")


def test_the_example_can_be_compared_with_where_no_other_run_is_kept(
    visit: Callable[..., AppTest], fake: TryingRunner, monkeypatch: pytest.MonkeyPatch
):
    fake.store.save(run_of(2, 3))
    app = visit()
    (option,) = app.selectbox(key="claims_against").options
    assert environment.machine(example().environment) in option and option.endswith(texts.EXAMPLE_TOO)
    app = calm(app.selectbox(key="claims_against").select_index(0).run())
    assert texts.NOTHING_IN_BOTH in words(app)
    monkeypatch.undo()
    monkeypatch.setattr(runner, "shared", lambda: fake)
    run = replace(example(), id=f"{3:024x}", digest={})
    fake.store.save(replace(run, environment={**run.environment, "tensorflow": "2.99.0"}))
    app = visit(run=run.id)
    app = calm(app.selectbox(key="claims_against").select("example").run())
    said = words(app)
    assert texts.NOTHING_CHANGED in said and "2.99.0 now" in said
