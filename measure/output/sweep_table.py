"""A sweep as tables of text, for a terminal: latencies by point, or a map's winners, then crossovers and fits."""

from collections.abc import Sequence

from measure.judge import crossovers, scaling, sweep_analysis
from measure.judge.lines import leaders, line_of, lines, readable
from measure.judge.scaling import Growth
from measure.output import table
from measure.run import text
from measure.run.run import Fit, Point, Run

# A terminal's width holds a name and so many latencies.
_COLUMNS = 10
_SAYS_SOMETHING = 0.1
# Marks a strategy in the leading group of a point.
LEADS = "*"


def render(run: Run, pair: Sequence[str] = ()) -> str:
    """The tables of a sweep, and all that there is to say about it; also where the first of a ``pair`` of strategies
    overtakes the second."""
    parts = list(map(table.grid, _map(run) if len(run.axes) == 2 else _latencies(run)))
    legend = [] if len(run.axes) == 2 else [f"{LEADS} leads, or ties with the leader"]
    parts += ["\n".join(block) for block in (legend, left_out(run), crossings(run), fits(run)) if block]
    if pair:
        parts.append(crossovers.sentences(crossovers.of_two(run, *pair)))
    parts.append(run.verdict)
    if about := table.about_function(run):
        parts.append("\n".join(about))
    if run.status != "complete":
        parts.append(f"{text.standing(run.status, run.stop_reason)}.")
    return "\n\n".join(parts)


def strategies(run: Run) -> list[str]:
    """Every strategy that occurs at a point, without a swept option, in the order in which they were asked for."""
    occurring = {line.slug for line in lines(run.points, run.axes)}
    asked = [slug for slug in run.request.strategies if slug in occurring]
    return [*asked, *sorted(occurring - set(asked))]


def latencies(run: Run) -> list[tuple[str, ...]]:
    """A line for each strategy: its latency at each point, marked where it leads; under a head of the axis' values."""
    head = (run.axes[0].name, *(where(point) for point in run.points))
    body = [(slug, *(_cell(run, point, slug) for point in run.points)) for slug in strategies(run)]
    return [head, *body]


def where(point: Point) -> str:
    """A point's values on the axes: ``1 000, 32``."""
    return ", ".join(f"{value:,}".replace(",", " ") for value in point.at.values())


def crossings(run: Run) -> list[str]:
    """A sentence for each pair that was looked at: where their lines cross, or why they do not."""
    return [f"{crossovers.sentence(crossover)}." for crossover in run.crossovers]


def fits(run: Run) -> list[str]:
    """A line for each fit: what a call costs, what each element adds, and how that grows."""
    growths = scaling.growths(run)
    return [_fit(fit, growths.get(fit.strategy)) for fit in run.fits]


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


def _latencies(run: Run) -> list[list[tuple[str, ...]]]:
    """`latencies` in blocks that fit a terminal."""
    whole = latencies(run)
    count = len(whole[0])
    return [
        [(line[0], *line[start : start + _COLUMNS]) for line in whole] for start in range(1, max(count, 2), _COLUMNS)
    ]


def _cell(run: Run, point: Point, slug: str) -> str:
    item = next((item for item in point.measurements if line_of(item.strategy, run.axes) == slug), None)
    if item is None:
        return "–" if point.status in ("complete", "running") else point.status
    if item.latency is None:
        return item.outcome.replace("_", " ")
    leads = LEADS if slug in leaders(point, run.axes) and sweep_analysis.asked_for(run, point) else ""
    return f"{text.seconds(item.latency.median_s)}{leads}"


def _map(run: Run) -> list[list[tuple[str, ...]]]:
    """A map's leaders, in brackets where they are inferred."""
    down, right = run.axes
    by_place = {(point.at[down.name], point.at[right.name]): _leading(run, point) for point in run.points}
    head = (f"{down.name} \\ {right.name}", *map(str, right.values))
    body = [(str(row), *(by_place.get((row, column), "·") for column in right.values)) for row in down.values]
    return [[head, *body]]


def _leading(run: Run, point: Point) -> str:
    named = " = ".join(leaders(point, run.axes)) or "·"
    return named if point.measurements or not point.ranking else f"({named})"


def cost(value_s: float, low_s: float, high_s: float) -> str:
    """A fitted cost with its interval, which may contain 0; far below its upper end, the value says nothing."""
    if low_s > 0:
        return text.seconds_with_interval(value_s, low_s, high_s)
    under = f"under {text.seconds(high_s)}"
    return f"{text.seconds(value_s)} [{under}]" if value_s > _SAYS_SOMETHING * high_s else under


def _fit(fit: Fit, growth: Growth | None) -> str:
    fixed = cost(fit.fixed_s, fit.fixed_low_s, fit.fixed_high_s)
    per_element = cost(fit.per_element_s, fit.per_element_low_s, fit.per_element_high_s)
    note = f"; {fit.note}" if fit.note else ""
    element = "an element" if fit.axis == "batch" else f"each of {fit.axis}"
    grows = f"; grows as {scaling.power(fit.axis, growth)}" if growth else ""
    return f"{fit.strategy}: {fixed} a call, and {per_element} for {element}{grows}{note}"
