"""Script time on the server for each change of a widget, as Streamlit's own script runner executes the page."""

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator

from msgspec.structs import replace
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.testing.v1 import AppTest, app_test

from measure import runner as runners
from tests.benchmarks import common
from tests.benchmarks.common import Figure, milliseconds
from tests.browser import ROOT
from views.ui import look

_CHANGES = 20


@contextlib.contextmanager
def timed_scripts() -> Iterator[list[float]]:
    """Seconds of each run of the page's script meanwhile, as Streamlit's own script runner executes it.

    A server compiles the script once, an `AppTest` with every run: here it is compiled once, too."""
    seconds: list[float] = []
    original, original_cache = ScriptRunner._run_script, app_test.ScriptCache
    compiled = ScriptCache()

    def timed(self: ScriptRunner, *args: object) -> None:
        begun = time.perf_counter()
        try:
            original(self, *args)  # type: ignore[arg-type]
        finally:
            seconds.append(time.perf_counter() - begun)

    ScriptRunner._run_script = timed  # type: ignore[assignment, method-assign]
    app_test.ScriptCache = lambda: compiled  # type: ignore[assignment, misc]
    try:
        yield seconds
    finally:
        ScriptRunner._run_script = original  # type: ignore[method-assign]
        app_test.ScriptCache = original_cache  # type: ignore[misc]


_SIZES = ("Thumbnails", "Small images")
# What a person changes, and the two values that it goes to and fro between.
_WIDGETS: dict[str, Callable[[AppTest, bool], object]] = {
    "batch": lambda page, odd: page.number_input(key="size_batch").set_value(101 if odd else 100),
    "size preset": lambda page, odd: page.button_group(key="size_preset").set_value(_SIZES[odd]),
    "dtype": lambda page, odd: page.selectbox(key="dtype").set_value(["float32", "float64"][odd]),
    "a strategy": lambda page, odd: page.checkbox(key=_cell("loop", "eager")).set_value(bool(odd)),
    "time budget": lambda page, odd: page.number_input(key="budget").set_value(30.0 if odd else 20.0),
    "baseline": lambda page, odd: page.selectbox(key="against").set_value(["batched.graph", "map_fn.graph"][odd]),
    "workload": lambda page, odd: page.selectbox(key="workload").set_value(["image_sqrt", "outer_product"][odd]),
}


def _cell(mapper: str, mode: str) -> str:
    return look.key("cell", mapper, mode)


def measure() -> list[Figure]:
    """Script time per change of a widget while a result is shown: one just measured here, and one read from disk."""
    runner = runners.shared()
    try:
        while runner.host().state != "ready":
            time.sleep(0.05)
        run = common.compare(runner, common.Problem("image_sqrt", {}).request())
        changes = [_change(f"just measured: {name}", run.id, name) for name in _WIDGETS]
        stored = run.id[::-1]
        runner.store.save(replace(run, id=stored))
        return changes + [_change(f"opened by its link: {name}", stored, name) for name in _WIDGETS]
    finally:
        runner.close()


def _change(title: str, run_id: str, name: str) -> Figure:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    page.query_params["run"] = run_id
    page.run()
    if not any("**Correctness**" in element.value for element in page.markdown):
        raise RuntimeError(f"{title}: the page shows no result")
    with timed_scripts() as seconds:
        totals = []
        for number in range(_CHANGES):
            del seconds[:]
            _WIDGETS[name](page, number % 2 == 0)
            page.run()
            if page.exception:
                raise RuntimeError(f"{title}: {page.exception[0].message}")
            totals.append(sum(seconds))
    return Figure(f"script, {title}", statistics.median(totals), 0.050, 0.030, milliseconds)
