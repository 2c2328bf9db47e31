"""The Claims page without a browser and without TensorFlow: verdicts, trying, evidence, and what changed."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure import runner
from measure.claims import known
from measure.claims.predicates import Figure
from measure.claims.spec import Claim, Said, Script
from measure.model.run import Evidence, Run
from measure.model.script_end import ScriptEnd
from measure.runner import Snapshot
from tests import synthetic
from tests.engine import ROOT
from tests.pages import StoredRunner, calm, words
from views.pages import texts

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


class TryingRunner(StoredRunner):
    """A runner that remembers which claims it was asked to try."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.tried: list[tuple[str, ...]] = []

    def submit_claims(self, ids: Sequence[str] = (), parent: str | None = None, owner: str = "") -> str:
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
    said = words(app)
    assert "An example, measured before." in said and "TensorFlow 2.21.0" in said
    ids = {claim.id for claim in known.all_claims()}
    judged = {button.key.removeprefix("open_") for button in app.button if button.key.startswith("open_")}
    # A claim that came later is one that was not tried yet.
    assert judged <= ids and len(judged) >= 40


def test_the_newest_verdict_on_each_claim_is_shown_and_what_trying_takes(
    visit: Callable[..., AppTest], fake: TryingRunner
):
    fake.store.add(run_of(1, 5))
    fake.store.save(run_of(2, 3))
    fake.store.save(run_of(3, 7, ["of another version"]))
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


def test_verdicts_that_changed_stand_in_a_table(visit: Callable[..., AppTest], fake: TryingRunner):
    earlier = run_of(1, 5)
    fake.store.add(replace(earlier, environment={**earlier.environment, "tensorflow": "2.15.0"}))
    fake.store.save(run_of(2, 3))
    app = visit()
    app = calm(app.selectbox(key="claims_against").select_index(0).run())
    (row,) = app.dataframe[0].value.to_dict("records")
    assert (row[texts.THEN_COLUMN], row[texts.NOW_COLUMN]) == ("does not hold", "holds")
    assert "2.15.0 then" in words(app).replace("\\", "")
