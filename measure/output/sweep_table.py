"""A sweep as tables of text, for a terminal: latencies by point, or a map's winners, then crossovers and fits."""

from collections.abc import Sequence

from measure.judge import sweep_findings
from measure.judge.lines import line_of, place, readable, sentence
from measure.judge.sweep_findings import SweepFindings
from measure.output import table
from measure.run import text
from measure.run.run import Point, Run

# A terminal's width holds a name and so many latencies.
_COLUMNS = 10
# A fitted cost below this share of its upper end says nothing.
_SAYS_SOMETHING = 0.1
# Mark a strategy in the leading group of a point, and a point whose verdict is not sure.
LEADS, UNSURE = "*", "?"
MARKS = f"{LEADS} is fastest, or ties for it; {UNSURE} not sure"


def render(run: Run, pair: Sequence[str] = ()) -> str:
    """The tables of a sweep, and all that there is to say about it; of a ``pair`` of strategies that is asked about,
    where the first overtakes the second."""
    sweep = sweep_findings.findings(run)
    run = sweep.run
    if len(run.axes) == 2:
        down, across = run.axes
        cells = {
            place(point): "not sure: " * sweep.is_unsure(point) + " = ".join(sweep.leaders(point))
            or sweep.statement(point)
            for point in run.points
        }
        lines = [(f"{row}", *(cells.get((row, column), "·") for column in across.values)) for row in down.values]
        parts = [table.grid([(f"{down.name} \\ {across.name}", *map(str, across.values)), *lines])]
    else:
        lines = [(run.axes[0].name, *(where(point) for point in run.points))]
        lines += [(slug, *(cell(sweep, point, slug) for point in run.points)) for slug in strategies(sweep)]
        starts = range(1, max(len(lines[0]), 2), _COLUMNS)
        parts = [table.grid([(line[0], *line[start : start + _COLUMNS]) for line in lines]) for start in starts]
        parts.append(MARKS)
    standing = [f"{text.standing(run.status, run.stop_reason)}."] if run.status != "complete" else []
    blocks = (left_out(run), crossings(sweep, *pair), fits(sweep), [sweep_findings.verdict(sweep, *pair)],
              table.listed(table.about_function(run)), standing)  # fmt: skip
    return "\n\n".join([*parts, *("\n".join(block) for block in blocks if block)])


def strategies(sweep: SweepFindings) -> list[str]:
    """Every strategy that occurs at a point, without a swept option, in the order in which they were asked for."""
    occurring, asked = [line.slug for line in sweep.lines], sweep.run.request.strategies
    return sorted(occurring, key=lambda slug: (asked.index(slug) if slug in asked else len(asked), slug))


def where(point: Point) -> str:
    """A point's values on the axes: ``1 000, 32``."""
    return ", ".join(f"{value:,}".replace(",", " ") for value in point.at.values())


def cell(sweep: SweepFindings, point: Point, slug: str) -> str:
    """A strategy's latency at a point, with its marks; or the word why there is none."""
    item = next((item for item in point.measurements if line_of(item.strategy, sweep.run.axes) == slug), None)
    mark = (LEADS + UNSURE * sweep.is_unsure(point)) * (slug in sweep.leaders(point))
    if item is None:
        return ("–" if point.status in ("complete", "running") else point.status) + mark
    return (text.seconds(item.latency.median_s) if item.latency else text.outcome(item.outcome)) + mark


def crossings(sweep: SweepFindings, *pair: str) -> list[str]:
    """A sentence for each pair of leaders: where their lines cross, or why they do not; none that is the verdict's."""
    verdict = sweep_findings.verdict(sweep, *pair)
    return [f"{words}." for words in map(sentence, sweep.crossovers) if words not in verdict]


def fits(sweep: SweepFindings) -> list[str]:
    """A line for each fit: what a call costs, what each element adds, and how that grows."""
    lines = []
    for fit, growth in sweep.fits:
        fixed = cost(fit.fixed_s, fit.fixed_low_s, fit.fixed_high_s)
        per_element = cost(fit.per_element_s, fit.per_element_low_s, fit.per_element_high_s)
        element = "an element" if fit.axis == "batch" else f"each of {fit.axis}"
        grows = f"; grows as {growth}" if growth else ""
        lines.append(f"{fit.strategy}: {fixed} a call, and {per_element} for {element}{grows}")
    return lines


def cost(value_s: float, low_s: float, high_s: float) -> str:
    """A fitted cost with its interval, which may contain 0; far below its upper end, the value says nothing."""
    if low_s > 0:
        return text.seconds_with_interval(value_s, low_s, high_s)
    under = f"under {text.seconds(high_s)}"
    return f"{text.seconds(value_s)} [{under}]" if value_s > _SAYS_SOMETHING * high_s else under


def left_out(run: Run) -> list[str]:
    """Points that are not measured, and strategies that were not run at one, each with the reason."""
    reasons = []
    for point in run.points:
        at = readable(point.at)
        if point.status != "complete" and not point.ranking and point.reason:
            reasons.append(f"{at}: {text.standing(point.status, point.reason)}")
        for item in point.measurements:
            if item.latency is None and item.error is not None:
                reasons.append(f"{at}: {line_of(item.strategy, run.axes)}: {item.error.message}")
    return reasons
