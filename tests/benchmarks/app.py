"""The time that a person waits for a verdict, a first outcome, the server, the page, and a widget's change; how well
that, and the memory that it takes, is forecast; and what the probes of the limit add to a comparison, which are the
only part of the reasons that nobody has to ask for.

``python -m tests.benchmarks.app [--runs 3] [--only comparisons probes server widgets forecasts]``; about 12 minutes.
"""

import argparse
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from measure.engine.bench import Settings
from measure.model import text
from measure.runner import Snapshot
from tests.benchmarks import common, forecasts, server, widgets
from tests.benchmarks.common import Figure, Milestones, Problem, say, whole_seconds

PARTS = ("comparisons", "probes", "server", "widgets", "forecasts")
# Of the default comparison at the default size, in seconds: (limit, aim). Other workloads only print theirs.
VERDICT_S = {"image_sqrt": (12.0, 8.0)}
FIRST_OUTCOME_S = {"image_sqrt": (2.0, 1.0)}
# What the probes may add to the time of a default comparison, as a share of it.
PROBES_ADD = 0.05


def comparisons(runs: int) -> list[Figure]:
    """Medians over ``runs`` default comparisons of each workload, the host warm."""
    figures = []
    with common.engine() as runner:
        for case in common.defaults():
            request = case.request()
            marks, verdict = [], ""
            for number in range(runs):
                say(f"{case.workload}: comparison {number + 1} of {runs}")
                mark = Milestones()
                verdict = common.compare(runner, request, mark.look).verdict
                marks.append(mark)
            say(verdict)
            figures += figures_of(case.workload, marks, common.forecast_of(request).seconds)
    return figures


def figures_of(workload: str, marks: Sequence[Milestones], forecast_s: float) -> list[Figure]:
    def median(values: Iterable[float | None]) -> float:
        return statistics.median(value if value is not None else float("inf") for value in values)

    return [
        Figure(
            f"{workload}: request to first outcome",
            median(mark.first_outcome_s for mark in marks),
            *FIRST_OUTCOME_S.get(workload, (None, None)),
            show=whole_seconds,
        ),
        Figure(
            f"{workload}: request to verdict",
            median(mark.verdict_s for mark in marks),
            *VERDICT_S.get(workload, (None, None)),
            show=whole_seconds,
        ),
        Figure(f"{workload}: the verdict's time as forecast", forecast_s, show=whole_seconds),
        Figure(f"{workload}: request to end", median(mark.end_s for mark in marks), show=whole_seconds),
    ]


@dataclass
class Probing(Milestones):
    """With the seconds in which the run says that it probes."""

    probing_s: float = 0.0
    _since_s: float | None = None

    def look(self, at_s: float, snapshot: Snapshot) -> None:
        super().look(at_s, snapshot)
        if snapshot.message.startswith("probing") and snapshot.state == "running":
            self._since_s = at_s if self._since_s is None else self._since_s
            self.probing_s = at_s - self._since_s


def probes(pairs: int, workload: str = "image_sqrt") -> list[Figure]:
    """Default comparisons with and without the probes, in turns. How many visits a comparison needs differs from run to
    run by more than the probes take: so what they take is also read off the runs that have them."""
    request = Problem(workload, {}).request()
    marks: dict[bool, list[Probing]] = {True: [], False: []}
    for number in range(pairs):
        for probing in (True, False) if number % 2 else (False, True):
            with common.engine(Settings(probes=probing)) as runner:
                mark = Probing()
                common.compare(runner, request, mark.look)
            say(
                f"{workload}, pair {number + 1} of {pairs}, {'with' if probing else 'without'} probes: verdict "
                f"{mark.verdict_s or 0.0:.2f} s, end {mark.end_s or 0.0:.2f} s, of which probing {mark.probing_s:.2f} s"
            )
            marks[probing].append(mark)

    def median(probing: bool, name: str) -> float:
        return statistics.median(getattr(mark, name) for mark in marks[probing])

    figures: list[Figure] = []
    added = statistics.median(mark.probing_s / ((mark.end_s or 0.0) - mark.probing_s) for mark in marks[True])
    for name, what in (("verdict_s", "verdict"), ("end_s", "end")):
        with_them, without = median(True, name), median(False, name)
        figures += [
            Figure(f"{workload}: request to {what}, with probes", with_them, show=whole_seconds),
            Figure(f"{workload}: request to {what}, without", without, show=whole_seconds),
            Figure(f"{workload}: to {what}, with over without", with_them / without, 1 + PROBES_ADD, show=_ratio),
        ]
    return [
        *figures,
        Figure(f"{workload}: the probes", median(True, "probing_s"), show=whole_seconds),
        Figure(f"{workload}: what they add to the rest of their run", added, PROBES_ADD, show=text.percent),
    ]


def _ratio(value: float) -> str:
    return f"{value:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs of each comparison (3)")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    arguments = parser.parse_args()
    common.start("How long a person waits")
    measured: list[Figure] = []
    with common.own_folders() as folder:
        if "comparisons" in arguments.only:
            measured += comparisons(arguments.runs)
        if "probes" in arguments.only:
            measured += probes(arguments.runs)
        if "server" in arguments.only:
            measured += server.measure(folder, arguments.runs)
        if "widgets" in arguments.only:
            measured += widgets.measure()
        if "forecasts" in arguments.only:
            tables, figures = forecasts.measure()
            print(f"{tables}\n")
            measured += figures
    print(common.figures(measured))


if __name__ == "__main__":
    main()
