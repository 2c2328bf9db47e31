"""The time that a person waits for a verdict, a first outcome, the server, the page, and a widget's change.

``python -m tests.benchmarks.app [--runs 3] [--only comparisons server widgets]``; about 6 minutes.
"""

import argparse
import statistics
from collections.abc import Iterable, Sequence

from tests.benchmarks import common, server, widgets
from tests.benchmarks.common import Figure, Milestones, say, whole_seconds

PARTS = ("comparisons", "server", "widgets")
# Of the default comparison at the default size, in seconds: (limit, aim). Other workloads only print theirs.
VERDICT_S = {"image_sqrt": (12.0, 8.0)}
FIRST_OUTCOME_S = {"image_sqrt": (2.0, 1.0)}


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


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(description=__doc__)
    whole.add_argument("--runs", type=int, default=3, help="runs of each comparison (3)")
    whole.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    return whole


def main() -> None:
    arguments = parser().parse_args()
    common.start("How long a person waits")
    measured: list[Figure] = []
    with common.own_folders() as folder:
        if "comparisons" in arguments.only:
            measured += comparisons(arguments.runs)
        if "server" in arguments.only:
            measured += server.measure(folder, arguments.runs)
        if "widgets" in arguments.only:
            measured += widgets.measure()
    print(common.figures(measured))


if __name__ == "__main__":
    main()
