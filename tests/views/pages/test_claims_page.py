"""The Claims page: the newest verdicts, trying, and evidence."""

from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from measure import admission, client
from measure.admission import NOBODY, Visitor
from measure.claims import known, verdicts
from measure.claims.spec import Compare, Figure, Script, claim
from measure.run.run import Evidence, Run, ScriptEnd
from measure.store.queue import WorkerState
from tests import synthetic
from tests.claims import evidence, of_one_test, script
from tests.claims import run as claims_run
from tests.keeping import put
from tests.pages import StoredClient, buttons, calm, example, open_page, params, press, words
from views.result import claims
from views.ui import memo
from views.ui.memo import Memo

_SCRIPT = Script("report(count=3)", seconds=7.0)
_OTHER = Script("report(count=4)", seconds=5.0)
CLAIMS = {
    one.id: one
    for one in (
        claim(
            "three", "speed", ("seed 1",), "There are `three` <b>of them</b>.",
            Figure(_SCRIPT, "count", "{value} were counted", 3, 3), advice="Count by hand.",
        ),
        claim(
            "four", "tracing", ("https://example.org/thread",), "There are four.",
            Figure(_OTHER, "count", "{value} were counted", 4, 4),
        ),
        claim(
            "pair", "tracing", (), "There are three, and four.",
            Figure(_SCRIPT, "count", "{value}", 3, 3), Figure(_OTHER, "count", "{value}", 4, 4),
        ),
    )
}  # fmt: skip


def counted(**counts: float | None) -> list[Evidence]:
    """Evidence in which the scripts of «three» and «four» counted so many, or failed."""
    scripts = {"three": _SCRIPT, "four": _OTHER}
    return [
        script(scripts[name], "ZeroDivisionError") if count is None else script(scripts[name], count=count)
        for name, count in counts.items()
    ]


def run_of(number: int, claims: Sequence[str] = ("three",), **changes: object) -> Run:
    """A run of claims; the greater its number, the newer it is."""
    own = {"id": f"{number:024x}", "created": f"2025-01-15T09:{number:02d}:00Z", "claims": list(claims)}
    return replace(claims_run([]), **own | changes)


class TryingClient(StoredClient):
    """A client that remembers which claims it was asked to try."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.tried: list[tuple[str, ...]] = []

    def submit(self, asked: Any, parent: str | None = None, visitor: Visitor = NOBODY, **more: Any) -> str:
        ids = tuple(claim.id for claim in asked)
        self.tried.append(ids)
        run = run_of(59, ids, finished=None)
        self.show(run, "running", message="1 of 1")
        return run.id


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TryingClient:
    fake = TryingClient(tmp_path)
    monkeypatch.setattr(client, "shared", lambda: fake)
    # What is remembered of runs, which have the same ids in all of these tests.
    monkeypatch.setattr(claims, "_outlines", Memo(str(tmp_path)))
    return fake


@pytest.fixture
def three_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "all_claims", lambda: tuple(CLAIMS.values()))


def test_a_first_visitor_sees_verdicts_that_were_measured_before_on_every_claim_that_needs_no_gpu(fake):
    run = example()
    app, facts = open_page("claims"), run.environment
    assert run.created[:10] in words(app) and facts["tensorflow"] in words(app) and facts["cpu_model"] in words(app)
    claims = [claim for claim in known.all_claims() if not claim.needs_gpu]
    assert {f"open_{claim.id}" for claim in claims} <= buttons(app)
    found = {claim.id: verdicts.of_run(claim, run).word for claim in claims}
    # Where one needs more than there was, that is said of the machine, and not of the claim.
    assert "cannot be tried here" not in found.values()
    assert list(found.values()).count("cannot tell") < 3
    assert found["new_batch_size_compiles"] == "holds" and found["control_flow_does_not_work"] == "does not hold"


def test_one_claim_that_was_tried_here_hides_no_verdict_that_comes_with_mapbench(fake):
    tried = of_one_test(Compare)
    put(fake.store, run_of(2, [tried.id], evidence=[evidence(tried.tests[0], True)]))
    shown = words(open_page("claims"))
    others = sum(not claim.needs_gpu for claim in known.all_claims()) - 1
    assert (shown.count("<b>Here:</b>"), shown.count("<b>Example:</b>")) == (1, others)


def test_a_claim_that_needs_a_gpu_is_offered_where_there_is_one(fake):
    everything = known.all_claims()
    for device, offered in (("GPU:0", everything), ("CPU:0", [one for one in everything if not one.needs_gpu])):
        fake.state = WorkerState("ready", "", (device,))
        app = open_page("claims")
        assert ("try_gpu_runs_map_fn" in buttons(app)) == ("It needs a GPU." not in words(app)) == (device == "GPU:0")
        assert f"Try all {len(offered)} " in app.button(key="try_all").label
        press(app, "try_all")
        assert len(fake.tried[-1]) == len(offered)
        fake.snapshots.clear()
    app = open_page("claims", claim="gpu_runs_map_fn")
    assert "It needs a GPU." in words(app) and "try_this" not in buttons(app)


def test_the_newest_run_that_has_all_figures_of_a_claim_counts_and_others_hide_none(fake, three_claims, monkeypatch):
    def newest_on() -> dict[str, int]:
        """Of each claim the number of the run that counts."""
        return {claim_id: int(run.id, 16) for claim_id, run in claims.newest().items()}

    save = partial(put, fake.store)
    save(run_of(1, evidence=counted(three=5)))
    save(run_of(2, evidence=counted(three=3)))
    save(run_of(3, ["of another version"], evidence=[Evidence(need="of another version")]))
    fake.store.add(run_of(4, evidence=counted(three=8, four=9)))  # of another machine
    assert newest_on() == {"three": 2}
    # A run of all that was cancelled or goes on tells of what it has.
    save(run_of(5, list(CLAIMS), evidence=counted(four=4), status="cancelled"))
    save(run_of(6, list(CLAIMS), evidence=counted(four=6), finished=None), live=True)
    assert newest_on() == {"three": 2, "four": 6}
    for number in range(7, 57):  # more than are read at once
        save(run_of(number, ["four"], evidence=counted(four=number)))
    save(run_of(57, list(CLAIMS), evidence=counted(three=3, four=4)))
    assert newest_on() == {"three": 57, "four": 57, "pair": 57}
    fake.store.add(run_of(58, evidence=counted(three=8)))
    monkeypatch.setenv("MAPBENCH_VIEWER", "1")
    assert newest_on() == {"three": 58, "four": 57, "pair": 57}, "where nothing is measured"


def test_verdicts_stand_beside_what_trying_takes(fake, three_claims):
    put(fake.store, run_of(2, evidence=counted(three=3)))
    app = open_page("claims")
    assert "holds" in words(app) and "3 were counted" in words(app) and "not tried here yet" in words(app)
    assert "&lt;b&gt;of them" in words(app), "texts stay texts"
    labels = {button.key: button.label for button in app.button}
    for key, seconds in (("try_all", 12), ("try_tracing", 12), ("try_three", 7)):
        assert f"{seconds} s" in labels[key]
    app = calm(app.button_group(key="claims_filter").set_value([None]).run())
    assert "3 were counted" not in words(app) and "There are four." in words(app)


def test_one_claim_a_group_or_all_are_tried(fake, three_claims):
    put(fake.store, run_of(2, evidence=counted(three=3)))
    for key, ids in (
        ("try_all", ("three", "four", "pair")),
        ("try_tracing", ("four", "pair")),
        ("try_four", ("four",)),
    ):
        app = press(open_page("claims"), key)
        assert fake.tried[-1] == ids
        assert params(app)["run"] == [f"{59:024x}"] and "1 of 1" in words(app) and "cancel" in buttons(app)
        fake.snapshots.clear()


def test_what_has_no_time_here_cannot_be_pressed_and_says_why(fake, three_claims, monkeypatch):
    monkeypatch.setattr(admission, "refusal", lambda asked: "No time." if len(asked) > 1 else None)
    tried = {button.key: button for button in open_page("claims").button if (button.key or "").startswith("try_")}
    assert {key for key, button in tried.items() if button.disabled} == {"try_all", "try_tracing"}
    assert tried["try_all"].help == "No time\\."


def test_a_claim_of_a_run_is_shown_with_its_evidence_and_tried_again(fake, three_claims):
    for number, (count, word, seen) in enumerate(
        ((3, "holds", "3 were counted"), (8, "does not hold", "8 were counted"), (None, "cannot tell", "ZeroDivision"))
    ):
        run = run_of(number, evidence=counted(three=count))
        put(fake.store, run)
        app = press(open_page("claims", run=run.id), "open_three")
        assert params(app)["claim"] == ["three"]
        assert word in words(app) and seen in words(app) and "Count by hand" in words(app)
        exec(app.code[0].value, names := {"__name__": "__main__"})
        assert names["figures"] == {"count": 3}, "the code that is shown runs"
    press(app, "try_this")
    assert fake.tried == [("three",)]


def test_what_a_script_of_an_imported_run_reported_stays_text(fake, three_claims):
    end = ScriptEnd(source="", figures={"count": synthetic.HOSTILE, synthetic.HOSTILE: 3})
    fake.store.add(run_of(1, evidence=[Evidence(need=_SCRIPT.key, script=end)]))
    [table] = open_page("claims", run=f"{1:024x}", claim="three").table
    cells = str(table.value.to_dict())  # a table's cells and headers are Markdown
    assert "bold" in cells and "**bold" not in cells and ":red" not in cells


def test_an_imported_run_with_the_ids_of_the_example_changes_nothing_of_what_others_see(fake, monkeypatch):
    monkeypatch.setattr(memo, "_values", OrderedDict())
    run, claim_id = example(), "whole_batch_faster_than_map_fn"
    evil = [replace(part, run=replace(part.run, measurements=[])) if part.run else part for part in run.evidence or ()]
    fake.store.add(replace(run, evidence=evil))
    assert not open_page("claims", run=run.id, claim=claim_id).code
    assert open_page("claims", claim=claim_id).code


def test_from_a_run_that_is_gone_a_button_leads_to_all_claims(fake, three_claims):
    app = press(open_page("claims", run="9" * 24), "claims_all")
    assert "run" not in params(app) and "try_all" in buttons(app)
