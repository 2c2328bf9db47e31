"""The time that a sweep takes, until its first line can be seen and until its end, its scatter, and a map's cells.

``python -m tests.benchmarks.sweeps [--runs 1]``: nine points and six strategies at default sizes; about half a minute
for each run. Of several runs the scatter of a latency between them is printed too.
``python -m tests.benchmarks.sweeps --page``: the same in a browser, from the click on Run to its first line; half a
minute.
``python -m tests.benchmarks.sweeps --map``: the winners of `outer_product` over batch × side among strategies of which
several win somewhere, filled adaptively and measured everywhere; about 10 minutes. Of the full grid, each cell that the
map has inferred is a comparison of its own; the others are those that the map has measured.
"""

import argparse
import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs
from playwright.sync_api import sync_playwright

from measure.engine.bench import Settings
from measure.model.run import Point, Run
from measure.output import sweep_table
from measure.runner import Runner, Snapshot
from measure.sweep import findings
from measure.sweep.request import SweepRequest, parse_sweep
from tests.benchmarks import common
from tests.benchmarks.common import Figure, say, whole_seconds
from tests.browser import ROOT, AppServer, launch, wait_idle

# Seconds of timing for each cell of the full grid that the map has inferred.
_CELL_BUDGET_S = 5.0
# None of these is a rewrite, which would win nearly everywhere.
ON_THE_MAP = ("loop.graph", "map_fn.xla", "vectorized_map.graph", "vectorized_map.xla")
SIX = ("loop.eager", "map_fn.graph", "vectorized_map.graph", "vectorized_map.xla", "batched.eager", "batched.graph")


def sweep(runner: Runner, request: SweepRequest, first_line: list[float] | None = None) -> Run:
    """Run one sweep to its end. ``first_line`` gets the seconds until two points of one strategy have a latency."""
    begun = time.perf_counter()
    run_id = runner.submit_sweep(request)
    message = ""
    while True:
        finished = runner.wait(run_id, 0.02)
        snapshot = runner.snapshot(run_id)
        assert snapshot is not None
        if first_line is not None and not first_line and _has_line(snapshot):
            first_line.append(time.perf_counter() - begun)
        where = snapshot.message.partition(":")[0]
        if where != message:
            message = where
            say(where)
        if finished:
            break
    if snapshot.run.status not in ("complete", "budget") or snapshot.fault:
        raise RuntimeError(f"the sweep was {snapshot.run.status}: {snapshot.run.stop_reason}")
    return snapshot.run


def _has_line(snapshot: Snapshot) -> bool:
    timed = [item.strategy for point in snapshot.run.points for item in point.measurements if item.latency]
    return len(timed) > len(set(timed))


def lines(workload: str, text: str, runs: int) -> None:
    """Sweep a size several times."""
    request = parse_sweep({"workload": workload, "strategies": list(SIX), "axes": [{"name": "batch", "range": text}]})
    first_line_s, end_s = [], []
    swept: list[Run] = []
    head = ("batch", *SIX)
    with common.own_folders(), common.engine() as runner:
        for _ in range(runs):
            begun = time.perf_counter()
            first_line: list[float] = []
            run = sweep(runner, request, first_line)
            end_s.append(time.perf_counter() - begun)
            first_line_s += first_line
            swept.append(run)
            print(run.verdict)
            print(f"{run.status}: {run.stop_reason}\n")
            print(common.table(head, [_row(point, head[1:]) for point in run.points]), "\n", flush=True)
    grid = f"{workload}, {len(request.points())} points × {len(SIX)} strategies"
    figures = [
        Figure("until the first line (two points of a strategy)", max(first_line_s), 3.0, show=whole_seconds),
        Figure(grid, statistics.median(end_s), 45.0, 30.0, whole_seconds),
    ]
    if runs > 1:
        figures.append(Figure("median scatter of a latency between repeats", scatter(swept), show=_tenth_of_percent))
    print(common.figures(figures))


def scatter(runs: Sequence[Run]) -> float:
    """The standard deviation, relative, between runs of a strategy's latency at a point: the median over all that every
    run has timed."""
    logs: dict[tuple[object, str], list[float]] = {}
    for run in runs:
        for point in run.points:
            for item in point.measurements:
                if item.latency is not None:
                    cell = (tuple(point.at.items()), item.strategy)
                    logs.setdefault(cell, []).append(math.log(item.latency.median_s))
    return statistics.median(statistics.stdev(cell) for cell in logs.values() if len(cell) == len(runs))


def _tenth_of_percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _row(point: Point, slugs: Sequence[str]) -> tuple[str, ...]:
    by_slug = {item.strategy: item for item in point.measurements}
    cells = []
    for slug in slugs:
        item = by_slug.get(slug)
        cells.append(
            f"{common.text.seconds(item.latency.median_s)} ×{len(item.replicas)}"
            if item is not None and item.latency
            else "–"
            if item is None
            else item.outcome
        )
    return (", ".join(f"{value:,}" for value in point.at.values()), *cells)


# Notes how long after the click on Run the first line of a chart has two points.
_WATCH_FOR_LINE = """() => {
  window.lineAfterMs = null;
  document.querySelector(".st-key-run button").addEventListener("click", () => {
    const begun = performance.now();
    const look = () => {
      const paths = [...document.querySelectorAll("[data-testid=stVegaLiteChart] svg .mark-line path")];
      const drawn = paths.some(path => (path.getAttribute("d") || "").includes("L"));
      if (drawn) window.lineAfterMs = performance.now() - begun;
      else requestAnimationFrame(look);
    };
    look();
  }, {once: true, capture: true});
}"""
_LOADING = "() => !document.querySelector('.st-key-run_bar').innerText.includes('hourglass')"


def page(workload: str, text: str, runs: int) -> None:
    """Time what visitors wait for the first line, each in a browser without a cache; TensorFlow is loaded by then."""
    first, last = text.split(":")
    chosen = "&".join(f"strategies={slug}" for slug in SIX)
    took_s = []
    with common.own_folders() as folder, sync_playwright() as playwright:
        server, browser = AppServer.start(ROOT / "app.py", folder / "home"), launch(playwright)
        try:
            for number in range(runs):
                say(f"visitor {number + 1} of {runs}")
                visit = browser.new_page()
                visit.goto(f"{server.url}/sweep?workload={workload}&from={first}&to={last}&{chosen}")
                wait_idle(visit)
                visit.wait_for_function(_LOADING)
                visit.evaluate(_WATCH_FOR_LINE)
                visit.locator(".st-key-run button").click()
                visit.wait_for_function("() => window.lineAfterMs !== null")
                took_s.append(visit.evaluate("() => window.lineAfterMs") / 1e3)
                visit.locator(".st-key-cancel button").first.click()
                visit.locator(".st-key-progress").wait_for(state="detached")
                visit.close()
        finally:
            browser.close()
            server.stop()
    print(", ".join(f"{each:.2f} s" for each in took_s))
    print(
        common.figures([Figure("from the click on Run to the first line, in the page", max(took_s), 3.0, show=_tenths)])
    )


def _tenths(value_s: float) -> str:
    return f"{value_s:.1f} s"


def winners(cells: int, budget_s: float, slugs: Sequence[str]) -> None:
    """A map as a sweep fills it, and, for the full grid, a comparison of each cell that the sweep has inferred."""
    request = parse_sweep(
        {
            "workload": "outer_product",
            "strategies": list(slugs),
            "budget_s": budget_s,
            "axes": [
                {"name": "batch", "range": "1:300", "points": cells},
                {"name": "side", "range": "2:16", "points": cells},
            ],
        }
    )
    with common.own_folders(), common.engine(Settings(process_peaks_s=0.0, probes=False)) as runner:
        begun = time.perf_counter()
        run = sweep(runner, request)
        took_s = time.perf_counter() - begun
        print(sweep_table.render(run), "\n", flush=True)
        inferred = [point for point in run.points if not point.measurements and point.ranking]
        full = {}
        for point in inferred:
            asked = replace(request.comparison(point.at), budget_s=_CELL_BUDGET_S)
            full[tuple(point.at.values())] = body = common.compare(runner, asked)
            say(f"{point.at}: {body.ranking[:1]}, inferred: {point.ranking[0]}")
    points = [_as_measured(point, full.get(tuple(point.at.values()))) for point in run.points]
    print(f"The full grid: {len(full)} cells measured now, {len(run.points) - len(full)} as the map measured them:\n")
    print(sweep_table.render(findings.analyse(structs.replace(run, points=points))), "\n")
    others = 0
    for point in inferred:
        body, leaders = full[tuple(point.at.values())], point.ranking[0]
        if not set(leaders) & set(body.ranking[0]):
            others += 1
            behind = _behind(body, leaders[0])
            print(f"{point.at}: inferred {', '.join(leaders)}, measured {', '.join(body.ranking[0])}, {behind}")
    used = sum(1 for point in run.points if point.measurements)
    figures = [
        Figure(f"comparisons used for {len(run.points)} cells", used, show="{:.0f}".format),
        Figure("strategies that lead somewhere", len(_winners(points)), show="{:.0f}".format),
        Figure("of the full grid's", used / len(run.points), 1 / 3, None, show="{:.0%}".format),
        Figure("inferred winners that neither win nor tie", others, 0, show="{:.0f}".format),
        Figure("time of the adaptive map", took_s, show=whole_seconds),
    ]
    print(common.figures(figures))


def _winners(points: Sequence[Point]) -> set[str]:
    return {point.ranking[0][0] for point in points if point.ranking}


def _as_measured(point: Point, body: Run | None) -> Point:
    return point if body is None else findings.settled(point, body, status="complete", reason="")


def _behind(run: Run, slug: str) -> str:
    """By how much a strategy is slower than the leader."""
    latency, best = run.measurement(slug).latency, run.measurement(run.ranking[0][0]).latency
    return f"{latency.median_s / best.median_s:.2f} × as long" if latency and best else "not timed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--map", action="store_true", help="compare the adaptive map with the full grid")
    parser.add_argument("--page", action="store_true", help="time the first line in a browser")
    parser.add_argument("--runs", type=int, default=1, help="of the line sweep, which are compared (1)")
    parser.add_argument("--visitors", type=int, default=5, help="with --page (5)")
    parser.add_argument("--cells", type=int, default=8, help="values of each axis of the map (8)")
    parser.add_argument(
        "--strategies", default=",".join(ON_THE_MAP), help="with --map: those of which several win somewhere"
    )
    parser.add_argument("--workload", default="square")
    parser.add_argument("--batch", default="1:10000", help="the range of the line sweep")
    arguments = parser.parse_args()
    common.start("The time that a sweep takes")
    if arguments.map:
        winners(arguments.cells, 3600.0, arguments.strategies.split(","))
    elif arguments.page:
        page(arguments.workload, arguments.batch, arguments.visitors)
    else:
        lines(arguments.workload, arguments.batch, arguments.runs)


if __name__ == "__main__":
    main()
