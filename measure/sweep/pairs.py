"""Two strategies of a sweep, asked for by a person though neither may lead: where does one overtake the other? Pure
functions of a run, and of the levels of its points."""

from dataclasses import dataclass

from measure.model.run import Crossover, Run
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
    crossing = next((crossover for crossover in run.crossovers if crossover.value is not None), None)
    return (crossing.b, crossing.a) if crossing else (known[1], known[0])


def ask(run: Run, one: str, other: str, known: Evidence) -> Answer:
    """Return the answer to «where does ``one`` overtake ``other``?». ``known``: the levels of the run's points."""
    if one == other:
        return Answer("Choose two different strategies.")
    # What the run says itself goes first, so that two sentences about one pair agree.
    stored = [crossover for crossover in run.crossovers if {crossover.a, crossover.b} == {one, other}]
    answers = stored or crossovers.of_two(one, other, known, run.analysis)
    if not answers:
        return Answer(f"{one} and {other}: one of them has no latency.")
    crossings = tuple(crossover for crossover in answers if crossover.value is not None)
    turned = "The other way around: " if crossings and all(crossover.b != one for crossover in crossings) else ""
    return Answer(f"{turned}{'; '.join(map(crossovers.sentence, answers))}.", crossings)
