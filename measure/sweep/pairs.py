"""Two strategies of a sweep, asked for by a person though neither may lead: where does one overtake the other? Pure
functions of a run, and of the levels of its points."""

from collections.abc import Sequence
from dataclasses import dataclass

from measure.model import text
from measure.model.run import Crossover, Run
from measure.statistics import intervals
from measure.sweep import crossovers, findings, regions
from measure.sweep.evidence import Evidence
from measure.sweep.lines import lines


@dataclass(frozen=True)
class Answer:
    """``sentence``: plain text; ``crossings``: the places at which the two change their order, none where they do
    not."""

    sentence: str
    crossings: tuple[Crossover, ...] = ()


def offered(run: Run) -> list[str]:
    """Return the lines that can be asked about, in the order in which they were asked for; none on a map."""
    return [line.slug for line in lines(run.points, run.axes)] if len(run.axes) == 1 else []


def first(run: Run) -> tuple[str, str] | None:
    """Return the pair to be asked about first, the one that overtakes before the one that is overtaken: of the first
    change that the verdict names, else the two fastest at the last point. None where there are no two."""
    known = offered(run)
    if len(known) < 2:
        return None
    points = findings.measured(run)
    if run.axes[0].kind == "size" and points:
        named = [region.leaders[0] for region in regions.along(points, run.axes)[:2]]
        ranked = [slug for group in points[-1].ranking for slug in group]
        one, other, *_ = [*named, *(slug for slug in [*ranked, *known] if slug not in named)]
        return (other, one)
    crossing = next((each for each in run.crossovers if each.value is not None), None)
    return (crossing.b, crossing.a) if crossing else (known[1], known[0])


def ask(run: Run, one: str, other: str, known: Evidence) -> Answer:
    """Return the answer to «where does ``one`` overtake ``other``?». ``known``: the levels of the run's points."""
    if one == other:
        return Answer("Choose two different strategies.")
    # What the run says itself goes first, so that two sentences about one pair agree.
    stored = [each for each in run.crossovers if {each.a, each.b} == {one, other} and each.value is not None]
    of_two = stored or crossovers.of_two(one, other, known, run.analysis)
    crossings = [each for each in of_two if each.value is not None]
    if not crossings:
        return Answer(_without(run, one, other, known))
    turned = "" if any(each.b == one for each in crossings) else "The other way around: "
    said = "; ".join(map(crossovers.sentence, crossings))
    return Answer(f"{turned}{said}.", tuple(crossings))


def _without(run: Run, one: str, other: str, known: Evidence) -> str:
    """The sentence about two that do not cross, or of which it cannot be told."""
    axis = run.axes[0].name
    pair = crossovers.pair(one, other, known)
    if pair is None:
        return f"It cannot be told: {_never(run, one, other, known)}."
    values = [int(value) for value in pair.values]
    signs = crossovers.signs_of(pair, run.analysis.confidence)
    where = f"between {axis} {values[0]:,} and {values[-1]:,}" if len(values) > 1 else f"at {axis} {values[0]:,}"
    if not any(signs):
        return f"It cannot be told: they tie {where}."
    factors = []
    for sign, a, b in zip(signs, pair.first, pair.second, strict=True):
        if sign:
            ratio = intervals.ratio(a, b, run.analysis.confidence).ratio
            factors.append(max(ratio, 1 / ratio))
    faster = f"{one if next(filter(None, signs)) < 0 else other} is {_span(factors)} faster"
    if len(values) == 1:
        return f"It cannot be told: both were measured {where} only, where {faster}."
    if all(signs):
        return f"They do not cross {where}: {faster} throughout."
    tied = len(values) - len(factors)
    return (
        f"No crossing can be told {where}: {faster} at {len(factors)} of {len(values)} points, and they tie at {tied}."
    )


def _never(run: Run, one: str, other: str, known: Evidence) -> str:
    """The words for why two have no latency at the same value."""
    timed = {along.line.slug for along in known.lines if along.timed}
    untimed = [slug for slug in (one, other) if slug not in timed]
    if not untimed:
        return f"they were never measured at the same {run.axes[0].name}"
    outcomes = {
        line.slug: {text.OUTCOMES.get(item.outcome, item.outcome) for _, _, item in line.points}
        for line in lines(run.points, run.axes)
    }
    return "; ".join(f"{slug} has no latency ({', '.join(sorted(outcomes.get(slug, [])))})" for slug in untimed)


def _span(factors: Sequence[float]) -> str:
    low, high = text.times(min(factors)), text.times(max(factors))
    return f"{high} ×" if low == high else f"{low} × to {high} ×"
