"""The Runs page, and what can be done with a run that is shown: export, import, measuring it again, continuing it."""

from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure.admission import Visitor
from measure.run.encoding import encode
from measure.run.place import StoreError
from measure.run.run import Run
from tests import synthetic
from tests.keeping import ids, in_report, put
from tests.pages import buttons, calm, open_page, params, press, words
from views.ui import session

ID = "0123456789abcdef01234567"
_BASE = synthetic.run(ID, unhappy=False)


def a_run(number: int = 0, **changes: object) -> Run:
    return replace(_BASE, id=f"{number:024x}", created=f"2025-01-15T09:{number % 60:02d}:00Z", **changes)


def runs() -> AppTest:
    return open_page("runs")


def table(app: AppTest) -> list[dict[str, str]]:
    return app.dataframe[0].value.to_dict("records") if app.dataframe else []


def choose(app: AppTest, *rows: int) -> AppTest:
    app.session_state[app.dataframe[0].key] = {"selection": {"rows": list(rows), "columns": [], "cells": []}}
    return calm(app.run())


def upload(app: AppTest, data: bytes, name: str = "run.json") -> AppTest:
    app.file_uploader[0].upload(name, data, "application/json")
    return calm(app.run())


def test_every_run_is_listed_with_what_tells_them_apart(stored):
    assert not runs().dataframe and runs().info, "without runs it says what to do"
    put(stored.store, a_run(1, environment={"cpu_model": "Zen 5", "cores_granted": 8}))
    put(stored.store, a_run(2, status="budget"))
    put(stored.store, a_run(3), live=True)
    stored.store.add(a_run(4))
    rows = table(runs())
    assert [row["status"] for row in rows] == ["complete", "running", "budget spent", "complete"]
    assert [row["whose"] for row in rows] == ["imported", "yours", "yours", "yours"]
    assert list(rows[0])[:3] == ["open", "workload", "verdict"], "a phone shows no more"
    assert rows[3] | {"open": ""} == {
        "open": "", "workload": "image_sqrt", "case": "batch 100, height 64, width 64, channels 3 · CPU:0",
        "whose": "yours",
        "verdict": _BASE.verdict, "machine": "Zen 5, 8 cores", "date (UTC)": "2025-01-15 09:01", "status": "complete",
    }  # fmt: skip


def test_search_and_filters_narrow_it_and_many_runs_come_in_pages(stored):
    for number in range(101):
        request = replace(_BASE.request, workload="top_k" if number == 1 else "square")
        put(stored.store, a_run(number, request=request, verdict=f"verdict {number}"))
    app = runs()
    app.session_state["runs_page"] = 3
    app = calm(app.run())
    assert "101 to 101 of 101 runs" in words(app) and len(table(app)) == 1
    app = calm(app.text_input(key="runs_text").set_value("2025").run())
    assert "1 to 50 of 101 runs" in words(app), "a search goes back to the first page"
    app = calm(app.selectbox(key="runs_workload").select("top_k").run())
    assert [row["verdict"] for row in table(app)] == ["verdict 1"]
    app = calm(app.text_input(key="runs_text").set_value("nothing like it").run())
    assert not table(app) and app.info


def test_a_store_that_cannot_be_used_is_said(stored, monkeypatch):
    def broken(*_: object) -> None:
        raise StoreError("it is malformed")

    put(stored.store, a_run())
    app = choose(runs(), 0)
    monkeypatch.setattr(stored.store, "delete", broken)
    app = press(app, "runs_delete_yes")
    assert "it is malformed" in app.warning[0].value and len(table(app)) == 1
    monkeypatch.setattr(stored.store, "values", broken)
    assert "it is malformed" in app.run().error[0].value and not app.exception


def test_runs_that_are_chosen_are_one_file_or_deleted_and_a_running_one_is_not(stored):
    for number in range(4):
        put(stored.store, a_run(number), live=number == 3)
    app = runs()
    assert app.button(key="runs_export_none").disabled and not app.get("link_button")
    app = choose(app, 0)
    assert app.get("link_button")[0].proto.url == f"export/{3:024x}/json"
    assert app.button(key="runs_delete_yes").disabled
    app = choose(app, 1, 3)
    exported, report = (link.proto.url for link in app.get("link_button"))
    assert exported == f"export/runs.zip?run={2:024x}&run={0:024x}" and report == exported.replace(".zip", ".html")
    app = press(choose(app, 0, 1, 3), "runs_delete_yes")
    assert set(ids(stored.store)) == {f"{3:024x}", f"{1:024x}"} and len(table(app)) == 2 and len(app.success) == 1
    # Another table forgets what was chosen in this one.
    app = choose(app, 1)
    assert not app.button(key="runs_delete_yes").disabled
    put(stored.store, a_run(2))
    assert calm(app.run()).button(key="runs_delete_yes").disabled


def test_two_comparisons_that_are_chosen_are_put_beside_each_other_the_older_first(stored):
    for number in range(3):
        put(stored.store, a_run(number))
    put(stored.store, replace(synthetic.sweep(), id=f"{3:024x}"))
    put(stored.store, a_run(4), live=True)
    number = {entry.id: row for row, entry in enumerate(stored.store.entries())}
    for others in ((1,), (1, 2, 0), (1, 3), (1, 4)):
        rows = [number[f"{one:024x}"] for one in others]
        assert "runs_compare" not in buttons(choose(runs(), *rows)), others
    app = press(choose(runs(), number[f"{2:024x}"], number[f"{1:024x}"]), "runs_compare")
    assert params(app) == {"run": [f"{1:024x}"], "with": [f"{2:024x}"]} and "pair_end" in buttons(app)


def test_on_a_hosted_server_only_what_ones_own_session_made_is_pinned_and_deleted(stored, monkeypatch):
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    monkeypatch.setattr(session, "visitor", lambda: Visitor("ann", "ann"))
    put(stored.store, a_run(1), owner="somebody else")
    app = choose(upload(runs(), encode(a_run(2))), 1)
    assert app.button(key="runs_delete_yes").disabled and app.button(key="runs_pin").disabled
    app = press(choose(app, 0, 1), "runs_pin")
    assert [row["status"] for row in table(app)] == ["complete, pinned", "complete"]
    assert [row["whose"] for row in table(app)] == ["yours, imported", "another visitor's"]
    press(choose(app, 0, 1), "runs_delete_yes")
    assert ids(stored.store) == [f"{1:024x}"]


def test_a_run_file_is_taken_in_marked_and_what_is_refused_is_said(stored):
    app = upload(runs(), encode(a_run(7)))
    assert stored.store.load(f"{7:024x}") == a_run(7) and table(app)[0]["whose"] == "imported"
    assert "run.json" in app.success[0].value.replace("\\", "")
    put(stored.store, a_run(1))
    app = upload(app, encode(a_run(7)), "again.json")
    assert "a run that is here already: what is here is kept" in app.success[0].value and len(ids(stored.store)) == 2
    app = upload(app, in_report(encode(a_run(7)), encode(a_run(9))), "report.html")
    assert "holds 2 runs, 1 of them new" in app.success[0].value and f"?run={9:024x}" in app.success[0].value
    stored.store.delete([f"{9:024x}"])
    for data, named in (
        (in_report(encode(a_run(9)), encode(replace(a_run(1), created="2025-01-15T09:02:00Z"))), f"{1:024x}"),
        (b"not json", "run.json was not imported"),
        (encode(a_run(8)).replace(b'"budget_s": 30.0', b'"budget_s": -1'), "at `$.request.budget_s`"),
    ):
        app = upload(app, data)
        assert named in app.warning[0].value.replace("\\", "").replace("\u2060", "") and not app.success
        assert len(ids(stored.store)) == 2 and stored.store.load(f"{1:024x}") == a_run(1)


def test_the_verdict_of_a_run_from_elsewhere_is_made_anew(stored):
    def imported(run: Run) -> AppTest:
        stored.store.add(run)
        return open_page(run=run.id)

    swept = synthetic.sweep(ID)
    earlier = replace(swept, analysis=replace(swept.analysis, version=1))
    for number, run in enumerate((_BASE, swept, earlier)):
        said = words(imported(replace(run, id=f"{number:024x}", verdict="nobody.eager is fastest: 1 ns.")))
        assert "nobody" not in said and run.verdict.partition(" below")[0] in said


def test_measuring_a_run_again_goes_through_the_rules_of_a_request(stored):
    def again(run: Run, button: str = "again") -> AppTest:
        stored.store.add(run)
        return press(open_page(run=run.id), button)

    app = again(a_run(1, request=replace(_BASE.request, workload="elsewhere")))
    assert "'elsewhere'" in words(app) and not stored.submitted
    again(a_run())
    (request,) = stored.submitted
    # A run of before, which names no allocator, had the default one.
    assert request.record() == replace(_BASE.request, strategies=list(request.strategies), allocator="default")
    assert set(request.strategies) == set(_BASE.request.strategies)
    # Those that tie after a full minute are measured by themselves, and for longer.
    first, second, *others = [slug for group in _BASE.ranking for slug in group]
    minute = replace(_BASE.request, max_budget_s=60.0)
    again(a_run(3, ranking=[[first, second], others], request=minute, status="budget"), "settle")
    assert set(stored.submitted[1].strategies) == {first, second} and stored.submitted[1].budget_s == 120.0
