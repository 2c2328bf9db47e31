"""A sweep as tables of text, for a terminal: latencies by point, or a map's winners, then crossovers and fits."""

from collections.abc import Sequence

from measure.judge import scaling, sweep_analysis
from measure.judge.crossovers import sentence
from measure.judge.lines import inferred, line_of, readable
from measure.judge.sweep_findings import SweepFindings, findings
from measure.output import table
from measure.run import text
from measure.run.run import Point, Run

# A terminal's width holds a name and so many latencies.
_COLUMNS = 10
_SAYS_SOMETHING = 0.1
# Marks a strategy in the leading group of a point.
LEADS = "*"


def render(run: Run, pair: Sequence[str] = ()) -> str:
    """The tables of a sweep, and all that there is to say about it; of a ``pair`` of strategies that is asked about,
    where the first overtakes the second."""
    sweep = findings(run)
    if len(run.axes) == 2:
        parts = [table.grid(_map(sweep))]
    else:
        whole = _latencies(sweep)
        starts = range(1, max(len(whole[0]), 2), _COLUMNS)
        parts = [table.grid([(line[0], *line[start : start + _COLUMNS]) for line in whole]) for start in starts]
        parts.append(f"{LEADS} leads, or ties with the leader")
    parts += ["\n".join(block) for block in (left_out(run), crossings(sweep), fits(sweep)) if block]
    parts.append(sweep_analysis.verdict(sweep, *pair))
    parts += ["\n".join(table.about_function(run))] if table.about_function(run) else []
    parts += [f"{text.standing(run.status, run.stop_reason)}."] if run.status != "complete" else []
    return "\n\n".join(parts)


def strategies(sweep: SweepFindings) -> list[str]:
    """Every strategy that occurs at a point, without a swept option, in the order in which they were asked for."""
    occurring, asked = [line.slug for line in sweep.lines], sweep.run.request.strategies
    return sorted(occurring, key=lambda slug: (asked.index(slug) if slug in asked else len(asked), slug))


def where(point: Point) -> str:
    """A point's values on the axes: ``1 000, 32``."""
    return ", ".join(f"{value:,}".replace(",", " ") for value in point.at.values())


def crossings(sweep: SweepFindings) -> list[str]:
    """A sentence for each pair of leaders: where their lines cross, or why they do not."""
    return [f"{sentence(crossover)}." for crossover in sweep.crossovers]


def fits(sweep: SweepFindings) -> list[str]:
    """A line for each fit: what a call costs, what each element adds, and how that grows."""
    lines = []
    for fit, growth in sweep.fits:
        fixed = cost(fit.fixed_s, fit.fixed_low_s, fit.fixed_high_s)
        per_element = cost(fit.per_element_s, fit.per_element_low_s, fit.per_element_high_s)
        element = "an element" if fit.axis == "batch" else f"each of {fit.axis}"
        grows = f"; grows as {scaling.power(fit.axis, growth)}" if growth else ""
        lines.append(f"{fit.strategy}: {fixed} a call, and {per_element} for {element}{grows}")
    return lines


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


def cost(value_s: float, low_s: float, high_s: float) -> str:
    """A fitted cost with its interval, which may contain 0; far below its upper end, the value says nothing."""
    if low_s > 0:
        return text.seconds_with_interval(value_s, low_s, high_s)
    under = f"under {text.seconds(high_s)}"
    return f"{text.seconds(value_s)} [{under}]" if value_s > _SAYS_SOMETHING * high_s else under


def _latencies(sweep: SweepFindings) -> list[tuple[str, ...]]:
    """A line for each strategy: its latency at each point, marked where it leads; under a head of the axis' values."""
    run = sweep.run
    head = (run.axes[0].name, *(where(point) for point in run.points))
    return [head, *((slug, *(cell(sweep, point, slug) for point in run.points)) for slug in strategies(sweep))]


def cell(sweep: SweepFindings, point: Point, slug: str) -> str:
    """A strategy's latency at a point, marked where it leads; or the word why there is none."""
    item = next((item for item in point.measurements if line_of(item.strategy, sweep.run.axes) == slug), None)
    if item is None:
        return "–" if point.status in ("complete", "running") else point.status
    if item.latency is None:
        return item.outcome.replace("_", " ")
    return f"{text.seconds(item.latency.median_s)}{LEADS if slug in sweep.leaders(point) else ''}"


def _map(sweep: SweepFindings) -> list[tuple[str, ...]]:
    """A map's leaders, in brackets where they are inferred."""
    down, right = sweep.run.axes
    cells = {}
    for point in sweep.run.points:
        named = " = ".join(sweep.leaders(point)) or "·"
        cells[point.at[down.name], point.at[right.name]] = f"({named})" if inferred(point) else named
    head = (f"{down.name} \\ {right.name}", *map(str, right.values))
    return [head, *((str(row), *(cells.get((row, column), "·") for column in right.values)) for row in down.values)]
