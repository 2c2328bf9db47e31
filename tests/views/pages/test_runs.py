"""The Runs page and what can be done with a run that is shown, without a browser and without TensorFlow."""

import dataclasses
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure import runner
from measure.admission import Visitor
from measure.engine.launcher import HostState
from measure.model.place import StoreError
from measure.model.request import RequestError, case_of
from measure.model.run import Code, Point, Run
from measure.model.run_file import encode
from measure.runner import Snapshot
from measure.store.store import Store
from measure.sweep import continuing
from measure.sweep.request import SweepRequest, of_run, parse_sweep
from strategies import script
from tests import synthetic
from tests.engine import DEADLINE_S, ROOT, small_request
from tests.pages import StoredRunner, calm, words
from tests.synthetic import HOSTILE
from views.charts import files
from views.ui import session

ID = "0123456789abcdef01234567"
_BASE = synthetic.run(ID, unhappy=False)


def a_run(number: int = 0, **changes: object) -> Run:
    return replace(_BASE, id=f"{number:024x}", created=f"2025-01-15T09:{number % 60:02d}:00Z", **changes)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoredRunner:
    fake = StoredRunner(tmp_path)
    monkeypatch.setattr(runner, "shared", lambda: fake)
    return fake


@pytest.fixture
def visit(fake: StoredRunner) -> Callable[[], AppTest]:
    def open_page() -> AppTest:
        app = calm(AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run())
        return calm(app.switch_page("views/pages/runs.py").run())

    return open_page


def table(app: AppTest) -> list[dict[str, str]]:
    return app.dataframe[0].value.to_dict("records") if app.dataframe else []


def choose(app: AppTest, *rows: int) -> AppTest:
    app.session_state[app.dataframe[0].key] = {"selection": {"rows": list(rows), "columns": [], "cells": []}}
    return calm(app.run())


def upload(app: AppTest, data: bytes, name: str = "run.json") -> AppTest:
    app.file_uploader[0].upload(name, data, "application/json")
    return calm(app.run())


class TestList:
    def test_every_run_is_listed_with_what_tells_them_apart(self, visit, fake):
        fake.store.save(a_run(1, environment={"cpu_model": "Zen 5", "cores_granted": 8}))
        fake.store.save(a_run(2, status="budget"), live=False)
        fake.store.save(a_run(3), live=True)
        fake.store.add(a_run(4))
        rows = table(visit())
        assert [row["status"] for row in rows] == ["complete, imported", "running", "budget spent", "complete"]
        assert rows[3] | {"open": ""} == {
            "open": "", "workload": "image_sqrt", "size": "batch 100, height 64, width 64, channels 3",
            "device": "CPU:0", "verdict": _BASE.verdict, "machine": "Zen 5, 8 cores",
            "date (UTC)": "2025-01-15 09:01", "status": "complete",
        }  # fmt: skip

    def test_without_runs_it_says_what_to_do(self, visit):
        app = visit()
        assert "No run is kept yet" in words(app) and not app.dataframe

    def test_search_and_filters_narrow_it(self, visit, fake):
        for number, workload in enumerate(("square", "top_k", "square")):
            fake.store.save(
                a_run(number, request=replace(_BASE.request, workload=workload), verdict=f"verdict {number}")
            )
        app = visit()
        app = calm(app.selectbox(key="runs_workload").select("square").run())
        assert [row["verdict"] for row in table(app)] == ["verdict 2", "verdict 0"]
        app = calm(app.text_input(key="runs_text").set_value("verdict 09:00").run())
        assert [row["verdict"] for row in table(app)] == ["verdict 0"]
        app = calm(app.text_input(key="runs_text").set_value("nothing like it").run())
        assert "No run matches" in words(app)

    def test_many_runs_come_in_pages_and_a_search_goes_back_to_the_first(self, visit, fake):
        for number in range(101):
            fake.store.save(a_run(number))
        app = visit()
        app.session_state["runs_page"] = 3
        app = calm(app.run())
        assert "101 to 101 of 101 runs" in words(app) and len(table(app)) == 1
        app = calm(app.text_input(key="runs_text").set_value("2025").run())
        assert "1 to 50 of 101 runs" in words(app)

    def test_a_store_that_cannot_be_used_is_said(self, visit, fake, monkeypatch):
        def broken(*_: object) -> None:
            raise StoreError("database disk image is malformed")

        app = calm(AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run())
        monkeypatch.setattr(fake.store, "values", broken)
        app.switch_page("views/pages/runs.py").run()
        assert not app.exception
        assert "The store of runs cannot be used: database disk image is malformed" in app.error[0].value


class TestDelete:
    def test_it_asks_first_and_only_then_deletes(self, visit, fake):
        for number in range(3):
            fake.store.save(a_run(number))
        app = choose(visit(), 0, 2)
        app = calm(app.button(key="runs_delete").click().run())
        assert "These 2 runs are deleted for good" in words(app) and len(fake.store.ids()) == 3
        app = calm(app.button(key="runs_delete_yes").click().run())
        assert fake.store.ids() == [f"{1:024x}"]
        assert [success.value for success in app.success] == ["2 runs deleted\\."]
        assert len(table(app)) == 1

    def test_who_thinks_better_of_it_keeps_them(self, visit, fake):
        fake.store.save(a_run())
        app = calm(choose(visit(), 0).button(key="runs_delete").click().run())
        calm(app.button(key="runs_delete_no").click().run())
        assert len(fake.store.ids()) == 1

    def test_a_running_one_cannot_be_deleted(self, visit, fake):
        fake.store.save(a_run(), live=True)
        assert choose(visit(), 0).button(key="runs_delete").disabled

    def test_on_a_hosted_server_only_what_ones_own_session_made_is_deleted(self, visit, fake, monkeypatch):
        monkeypatch.setenv("MAPBENCH_HOSTED", "1")
        monkeypatch.setattr(session, "visitor", lambda: Visitor("ann", "ann"))
        fake.store.save(a_run(1), owner="somebody else")
        app = upload(visit(), encode(a_run(2)))
        app = choose(app, 1)
        assert app.button(key="runs_delete").disabled
        app = choose(app, 0, 1)
        app = calm(app.button(key="runs_delete").click().run())
        assert "The run is deleted for good" in words(app)
        calm(app.button(key="runs_delete_yes").click().run())
        assert fake.store.ids() == [f"{1:024x}"]

    @pytest.mark.parametrize("why", ["database is locked", "database or disk is full", "attempt to write a readonly"])
    def test_a_store_that_cannot_delete_is_said(self, visit, fake, monkeypatch, why):
        fake.store.save(a_run())

        def broken(*_: object) -> None:
            raise StoreError(why)

        app = calm(choose(visit(), 0).button(key="runs_delete").click().run())
        monkeypatch.setattr(fake.store, "delete", broken)
        app = calm(app.button(key="runs_delete_yes").click().run())
        assert [each.value for each in app.warning] == [f"Nothing was deleted: {why}\\."]
        assert len(table(app)) == 1

    def test_another_table_forgets_what_was_chosen_in_this_one(self, visit, fake):
        fake.store.save(a_run(1))
        app = choose(visit(), 0)
        assert not app.button(key="runs_delete").disabled
        fake.store.save(a_run(2))  # now this one is first
        assert calm(app.run()).button(key="runs_delete").disabled


class TestExport:
    def test_what_is_chosen_is_offered_as_one_file(self, visit, fake):
        for number in range(2):
            fake.store.save(a_run(number))
        app = visit()
        assert app.button(key="runs_export_none").disabled and not app.get("link_button")
        assert choose(app, 0).get("link_button")[0].proto.url == f"export/{1:024x}/json"
        assert choose(app, 0, 1).get("link_button")[0].proto.url == f"export/runs.zip?run={1:024x}&run={0:024x}"

    def test_charts_are_drawn_when_no_latencies_are_sampled(self, fake, monkeypatch):
        fake.store.save(a_run(1))
        going_on = Snapshot(synthetic.partial(0, ID), "running", round_number=2)
        fake.snapshots[ID], fake.waiting = going_on, (ID,)
        for round_number in (2, None):
            fake.snapshots[ID] = dataclasses.replace(going_on, round_number=round_number)
            app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
            app.query_params["run"] = f"{1:024x}"
            app.session_state["export"] = True
            calm(app.run())
            pictures = [link.proto for link in app.get("link_button") if link.proto.label in ("SVG", "PNG")]
            assert pictures and {picture.disabled for picture in pictures} == {round_number is not None}
            assert ("open this again in a moment" in words(app)) is (round_number is not None)

    def test_only_charts_that_show_something_are_offered(self, fake):
        fake.store.save(a_run(1))
        fake.store.save(replace(synthetic.sweep(ID), id=f"{2:024x}"))
        no_memory = [replace(m, memory=None) for m in _BASE.measurements]
        fake.store.save(a_run(3, measurements=no_memory))
        offered = {}
        for number, page in ((1, "compare"), (2, "sweep"), (3, "compare")):
            app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
            app.query_params["run"] = f"{number:024x}"
            app.session_state["export"] = True
            app = calm(app.switch_page(f"views/pages/{page}.py").run())
            addresses = {link.proto.url for link in app.get("link_button")}
            offered[number] = {address.rpartition("/")[2] for address in addresses if address.endswith(".svg")}
        assert offered[1] == {f"{name}.svg" for name in files.COMPARE}
        assert offered[2] == {f"{name}.svg" for name in files.LINES}
        assert offered[3] == {f"{name}.svg" for name in files.COMPARE} - {"timeline.svg"}


class TestImport:
    def test_a_run_file_is_taken_in_marked_and_can_be_opened(self, visit, fake):
        app = upload(visit(), encode(a_run(7)))
        assert fake.store.load(f"{7:024x}") == a_run(7)
        assert "run.json was imported" in app.success[0].value.replace("\\", "")
        assert table(app)[0]["status"] == "complete, imported"
        app = upload(app, encode(a_run(7)), "again.json")
        assert "again.json holds a run that is here already" in app.success[0].value.replace("\\", "")

    @pytest.mark.parametrize(
        ("data", "says"),
        [
            (b"not json", "run.json was not imported: this is not a valid run file"),
            (encode(a_run(7)).replace(b'"budget_s": 30.0', b'"budget_s": -1'), "at `$.request.budget_s`"),
            (encode(a_run(7, schema="mapbench.run/2")), "schema 'mapbench.run/2' is not known"),
            (encode(a_run(1, verdict="a forgery")), f"another run with the id {1:024x} is here already"),
        ],
    )
    def test_what_is_refused_is_said_and_nothing_is_stored(self, visit, fake, data, says):
        fake.store.save(a_run(1))
        app = upload(visit(), data)
        assert says in app.warning[0].value.replace("\\", "").replace("\u2060", "")
        assert fake.store.ids() == [f"{1:024x}"] and fake.store.load(f"{1:024x}") == a_run(1)


class TestImported:
    @pytest.fixture
    def open_run(self, fake) -> Callable[..., AppTest]:
        def open_page(run: Run, **params: str) -> AppTest:
            fake.store.add(run)
            app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
            for name, value in {"run": run.id, **params}.items():
                app.query_params[name] = value
            return calm(app.run())

        return open_page

    @pytest.mark.parametrize("run", [_BASE, synthetic.sweep(ID)], ids=["comparison", "sweep"])
    def test_its_verdict_is_made_anew_of_its_data(self, open_run, run: Run):
        said = words(open_run(replace(run, verdict="nobody.eager is fastest: 1 ns.")))
        assert "nobody" not in said and run.verdict in said

    def test_the_verdict_of_an_earlier_method_is_marked_as_the_files(self, open_run):
        swept = synthetic.sweep(ID)
        earlier = replace(swept, verdict="loop.eager leads.", analysis=replace(swept.analysis, version=1))
        assert "loop.eager leads." in (said := words(open_run(earlier))) and "This sentence comes from the file" in said

    def test_it_is_marked_and_its_code_is_only_text(self, open_run):
        app = open_run(a_run(), tab="Code")
        assert any("imported" in caption.value for caption in app.caption)
        assert "nothing here has executed it" in words(app)
        assert any("def strategy(elems):" in code.value for code in app.code)

    def test_no_script_is_made_up_where_the_file_holds_none(self, open_run):
        bare = [replace(m, code=None) for m in _BASE.measurements]
        app = open_run(a_run(measurements=bare), tab="Code")
        assert [code.value for code in app.code] == ["# The file does not hold the script of this strategy."]

    def test_a_run_of_a_device_and_a_workload_that_are_not_here_opens(self, open_run):
        there = replace(_BASE.request, device="GPU:3", workload="image_sqrt")
        assert _BASE.verdict in words(open_run(a_run(1, request=there)))
        nowhere = replace(_BASE.request, device=HOSTILE[:20], workload=HOSTILE, size={HOSTILE: 1}, dtype=HOSTILE)
        assert _BASE.verdict in words(open_run(a_run(2, request=nowhere)))

    def test_strategies_whose_names_differ_in_signs_only_are_shown(self, open_run):
        names = ("a.b", "a-b", "a b", "a/b")
        failed = [
            replace(synthetic.failure("a", "b", "failed", f"no {name}", f"detail {name}"), strategy=name)
            for name in names
        ]
        app = open_run(a_run(measurements=[*_BASE.measurements, *failed]))
        for number in range(len(names) + 5):  # of the base, five have failed before them
            app.session_state[f"detail_{number}"] = True
        app = calm(app.run())
        assert [code.value for code in app.code if code.value.startswith("detail")] == [
            "detail a.b", "detail a-b", "detail a b", "detail a/b"
        ]  # fmt: skip

    def test_measuring_it_again_goes_through_the_rules_of_a_request(self, open_run, fake):
        app = open_run(a_run())
        app.button(key="again").click().run()
        (request,) = fake.submitted
        assert request.record() == replace(_BASE.request, strategies=list(request.strategies))
        assert set(request.strategies) == set(_BASE.request.strategies)

    def test_a_tie_is_settled_by_measuring_those_that_tie_by_themselves_for_longer(self, open_run, fake):
        first, second, *others = [slug for group in _BASE.ranking for slug in group]
        app = open_run(a_run(ranking=[[first, second], others]))
        app.button(key="settle").click().run()
        (request,) = fake.submitted
        assert set(request.strategies) == {first, second} and request.budget_s == 60.0
        assert request.record() == replace(_BASE.request, strategies=list(request.strategies), budget_s=60.0)

    @pytest.mark.parametrize("budget_s", [15.0, 60.0])
    def test_where_one_leads_or_a_tie_has_had_its_time_there_is_nothing_to_settle(self, open_run, budget_s: float):
        first, second, *others = [slug for group in _BASE.ranking for slug in group]
        ranking = [[first], [second, *others]] if budget_s == 15.0 else [[first, second], others]
        app = open_run(a_run(ranking=ranking, request=replace(_BASE.request, budget_s=budget_s)))
        assert "settle" not in {button.key for button in app.button}

    def test_what_cannot_be_measured_here_is_said(self, open_run, fake):
        app = open_run(a_run(request=replace(_BASE.request, workload="elsewhere")))
        app = calm(app.button(key="again").click().run())
        assert "This cannot be measured here: workload 'elsewhere' is not known" in words(app) and not fake.submitted


class TestAgain:
    def test_what_repeats_a_run_says_whether_the_verdict_was_reproduced(self, fake):
        fake.store.save(a_run(1))
        fake.store.save(a_run(2, parent=a_run(1).id))
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app.query_params["run"] = a_run(2).id
        app = calm(app.run())
        assert "The verdict was reproduced: batched.xla and batched.graph lead again." in words(app)
        assert "All ranks are the same." in words(app)
        app = calm(app.button(key="parent").click().run())
        assert app.query_params["run"] in (a_run(1).id, [a_run(1).id])

    def test_a_first_run_that_is_gone_is_said(self, fake):
        fake.store.save(a_run(2, parent="f" * 24))
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app.query_params["run"] = a_run(2).id
        assert "It repeats a run that is not known here." in words(calm(app.run()))


def test_choices_are_as_they_were_left_when_one_comes_back(fake: StoredRunner) -> None:
    """The navigation opens a page without what stood in its address."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.query_params["size_batch"] = "7"
    calm(app.run())
    left = dict(app.query_params)
    app.query_params.clear()
    calm(app.switch_page("views/pages/runs.py").run())
    assert not app.query_params
    calm(app.switch_page("views/pages/compare.py").run())
    assert app.number_input(key="size_batch").value == 7
    assert dict(app.query_params) == left


# --- the runner and the store, with nothing that could measure ---


class NoHost:
    """A launcher whose host never comes up."""

    start_method = "fork"

    def state(self) -> HostState:
        return HostState("failed", "there is none", ("CPU:0",))

    def wait_ready(self, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        return False

    def close(self) -> None:
        pass


@pytest.fixture
def a_runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], runner.Runner]]:
    """``a_runner()``: a server's runner; all have one store."""
    monkeypatch.setenv("MAPBENCH_LOCK", str(tmp_path / "measure.lock"))
    made = []

    def make() -> runner.Runner:
        made.append(runner.Runner(store_=Store(tmp_path / "home"), launcher_=NoHost()))
        return made[-1]

    yield make
    for each in made:
        each.close()


class TestRunner:
    def test_what_a_second_server_deletes_is_gone_on_the_first_one_too(self, a_runner):
        first, second = a_runner(), a_runner()
        run_id = first.submit(small_request("batched.eager"))
        assert first.wait(run_id, DEADLINE_S)
        seen = first.snapshot(run_id)
        assert (seen.state, seen.here) == ("finished", True) and seen.run == second.snapshot(run_id).run
        assert second.delete([run_id]) == [run_id]
        assert first.snapshot(run_id) is None and second.snapshot(run_id) is None

    def test_a_sweep_from_elsewhere_is_not_continued(self, a_runner):
        own = a_runner()
        request = parse_sweep(
            {"workload": "square", "strategies": ["batched.eager"], "axes": [{"name": "batch", "values": [1, 2]}]}
        )
        forged = replace(
            synthetic.sweep(ID), status="cancelled", request=request.base.record(), axes=list(request.axes), points=[],
            crossovers=[], fits=[], environment={},
        )  # fmt: skip
        own.store.add(forged)
        with pytest.raises(RequestError, match=r"comes from elsewhere.*«Measure again here»"):
            own.submit_sweep(of_run(forged), continue_from=ID)
        own.store.delete([ID])
        own.store.save(forged)  # the same, had it been measured here
        assert own.wait(own.submit_sweep(of_run(forged), continue_from=ID), DEADLINE_S)

    def test_the_page_has_no_button_for_it(self, fake):
        forged = replace(synthetic.sweep(ID), status="cancelled")
        fake.store.add(forged)
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app.query_params["run"] = ID
        app = calm(app.switch_page("views/pages/sweep.py").run())
        assert "again" in {button.key for button in app.button}
        assert "continue" not in {button.key for button in app.button}
        fake.store.delete([ID])
        fake.store.save(forged)
        assert "continue" in {button.key for button in calm(app.run()).button}


def measured_sweep(source: str | None = None, sha256: str | None = None) -> tuple[SweepRequest, Run]:
    """A sweep of two points that was cancelled; with other code at its second point."""
    request = parse_sweep(
        {"workload": "square", "strategies": ["batched.eager"], "axes": [{"name": "batch", "values": [1, 2]}]}
    )
    rng = np.random.default_rng(0)
    points = []
    for n in (1, 2):
        asked = request.comparison({"batch": n})
        right = script.build(case_of(asked), "batched.eager")
        code = Code(source=right, sha256=hashlib.sha256(right.encode()).hexdigest())
        if n == 2:
            code = Code(source=source or right, sha256=sha256 or code.sha256)
        item = replace(synthetic.measurement("batched.eager", rng), code=code)
        points.append(Point(at={"batch": n}, status="complete", measurements=[item], ranking=[["batched.eager"]]))
    run = Run(
        id=ID, kind="sweep", created="2025-01-15T09:30:00Z", status="cancelled", request=request.base.record(),
        axes=list(request.axes), points=points,
    )  # fmt: skip
    return request, run


def test_every_source_of_a_sweep_that_is_continued_is_what_its_hash_says():
    request, run = measured_sweep()
    assert continuing.taken_over(run, request, {}) == run.points
    request, forged = measured_sweep(source="EVIL")
    with pytest.raises(RequestError, match=r"the code of batched\.eager for square has changed"):
        continuing.taken_over(forged, request, {})
