"""The cost of a long history: script time of the pages with 10 000 runs stored.

``python -m tests.benchmarks.history [--runs 10000]``; about 3 minutes, most of it to store the runs.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure import runner as runners
from measure.model import place
from measure.model.run import Run
from tests import synthetic
from tests.benchmarks import common
from tests.benchmarks.common import Figure, megabytes, milliseconds, say
from tests.benchmarks.widgets import timed_scripts
from tests.browser import ROOT
from views.charts import sweep_front

_CHANGES = 20
_FIRST_S, _CHANGE_S = 0.3, 0.050
_WORKLOADS = ("image_sqrt", "outer_product", "square", "top_k")


def _fill(count: int) -> list[str]:
    """Store runs that differ in all that is listed, as one after the other would be."""
    base = synthetic.run(unhappy=False)
    kept = runners.shared().store
    ids = []
    begun = time.perf_counter()
    for number in range(count):
        created = (datetime(2025, 1, 1, tzinfo=UTC) + timedelta(minutes=number)).isoformat()
        request = replace(base.request, workload=_WORKLOADS[number % 4], size={"batch": number + 1})
        machine = {**base.environment, "cpu_model": f"Processor {number % 7}", "cores_granted": number % 64 + 1}
        run: Run = replace(base, id=f"{number:024x}", created=created, request=request, environment=machine)
        kept.save(run)
        ids.append(run.id)
        if number % 1000 == 999:
            say(f"{number + 1} runs stored")
    say(f"{milliseconds((time.perf_counter() - begun) / count)} for each run stored")
    return ids


def _runs_page() -> AppTest:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    return page.switch_page("views/pages/runs.py")


def _first(name: str, make: Callable[[], AppTest]) -> Figure:
    totals = []
    for _ in range(5):
        page = make()
        with timed_scripts() as seconds:
            page.run()
        _check(page)
        totals.append(sum(seconds))
    return Figure(f"{name}, first script run", max(totals), _FIRST_S, show=milliseconds)


def _change(name: str, make: Callable[[], AppTest], change: Callable[[AppTest, bool], object]) -> Figure:
    page = make().run()
    totals = []
    with timed_scripts() as seconds:
        for number in range(_CHANGES):
            del seconds[:]
            change(page, number % 2 == 0)
            page.run()
            _check(page)
            totals.append(sum(seconds))
    return Figure(f"{name}", statistics.median(totals), _CHANGE_S, show=milliseconds)


def _check(page: AppTest) -> None:
    if page.exception or page.error:
        raise RuntimeError(str([*page.exception, *page.error]))


def _select(page: AppTest, odd: bool) -> None:
    rows = [0, 1] if odd else []
    page.session_state[page.dataframe[0].key] = {"selection": {"rows": rows, "columns": [], "cells": []}}


def _go_to_page(page: AppTest, odd: bool) -> None:
    page.session_state["runs_page"] = 100 if odd else 1


def _look_at_point(page: AppTest, odd: bool) -> None:
    page.selectbox(key="sweep_point").select_index(1 if odd else 2)


def measure(count: int) -> list[Figure]:
    ids = _fill(count)
    sweep = synthetic.sweep(f"{count:024x}")
    runners.shared().store.save(sweep)
    room = sweep_front.steps(sweep_front.subject(sweep)[0])

    def opened() -> AppTest:
        page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        page.query_params["run"] = ids[len(ids) // 2]
        return page

    def swept() -> AppTest:
        page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        page.query_params["run"] = sweep.id
        return page.switch_page("views/pages/sweep.py")

    def write(key: str, *values: str) -> Callable[[AppTest, bool], object]:
        return lambda page, odd: page.text_input(key=key).set_value(values[not odd])

    def have_memory(page: AppTest, odd: bool) -> None:
        page.select_slider(key="memory_dial").set_value(room[0 if odd else -1])

    def tab(page: AppTest, odd: bool) -> None:
        page.session_state["tab"] = "Code" if odd else "Break even"

    def search(text: str) -> Callable[[AppTest, bool], object]:
        return lambda page, odd: page.text_input(key="runs_text").set_value(text if odd else "")

    def choose(key: str, *values: str | None) -> Callable[[AppTest, bool], object]:
        return lambda page, odd: page.selectbox(key=key).set_value(values[not odd])

    def batch(page: AppTest, odd: bool) -> None:
        page.number_input(key="size_batch").set_value(101 if odd else 100)

    figures = [
        _first("Runs page", _runs_page),
        _change("Runs page, search", _runs_page, search("processor 3")),
        _change("Runs page, a search that finds nothing", _runs_page, search("nothing like it")),
        _change("Runs page, filter by workload", _runs_page, choose("runs_workload", "top_k", None)),
        _change("Runs page, filter by status", _runs_page, choose("runs_status", "complete", None)),
        _change("Runs page, selection", _runs_page, _select),
        _change("Runs page, to the 100th page and back", _runs_page, _go_to_page),
        _change("Compare page, batch, a stored run shown", opened, batch),
        _change("Compare page, baseline, a stored run shown", opened, choose("against", "batched.graph", "loop.graph")),
        _change("Compare page, workload, a stored run shown", opened, choose("workload", "square", "image_sqrt")),
        _change("Compare page, tab", opened, tab),
        _change("Sweep page, range, a stored sweep shown", swept, write("to", "100", "1000")),
        _change("Sweep page, memory slider", swept, have_memory),
        _change("Sweep page, comparison at a point", swept, _look_at_point),
    ]
    file = place.home() / "runs.db"
    return [*figures, Figure("size of the store", file.stat().st_size, show=megabytes)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="how many are stored (10000)")
    arguments = parser.parse_args()
    common.start(f"A history of {arguments.runs:,} runs")
    with common.own_folders():
        try:
            print(common.figures(measure(arguments.runs)))
        finally:
            runners.shared().close()


if __name__ == "__main__":
    main()
