"""Refining crossings near the lead, by points between those of the grid and more processes beside them."""

from collections.abc import Iterator, Sequence

from measure.model.run import Crossover, Point
from measure.sweep.lines import latencies_s, line_of, lines
from measure.sweep.sites import AT_POINT, Site, fewest_processes
from measure.sweep.survey import Survey

# A crossing is refined until its interval spans less than this factor, with at most so many points between the grid's.
CLOSE = 1.2
MOST_ADDED = 3
# Refined are crossings near the lead: the lines cross at most so many times above the fastest strategy there.
NEAR_LEAD = 1.5
MOST_CROSSINGS = 4


def refine(survey: Survey) -> Iterator[None]:
    """Measure where lines cross near the lead: between the points that a crossing lies between, and those points
    themselves with more processes. Yields after each step, when the survey is to be analysed anew."""
    for crossover in _near_lead(survey):
        added = 0
        while True:
            crossing = _again(survey, crossover)
            beside = _beside(survey, crossing) if crossing is not None else None
            if crossing is None or beside is None or crossing.low is None or crossing.high is None:
                break
            flat = _flat(survey)
            varying = [line for line in (crossing.a, crossing.b) if line not in flat]
            few = [site for site in beside if fewest_processes(site.point, _slugs(survey, site, varying)) < AT_POINT]
            if few:
                for site in few:
                    _more_processes(survey, site, varying)
                yield
                continue
            low, high = (site.point.at[crossing.axis] for site in beside)
            middle = _between(low, high, crossing.low, crossing.high)
            if crossing.high <= CLOSE * crossing.low or middle is None or added >= MOST_ADDED:
                break
            added += 1
            site = Site(Point(at={crossing.axis: middle}), tuple(varying))
            survey.draft.add(site)
            survey.measure(site, survey.left_s)
            _more_processes(survey, site, varying)
            yield


def _near_lead(survey: Survey) -> list[Crossover]:
    """Crossings that may change who leads, those nearest to the lead first."""
    near = []
    for crossover in survey.draft.run.crossovers:
        if (beside := _beside(survey, crossover)) is None:
            continue
        heights = []
        for site in beside:
            latency_s = _latencies(survey, site)
            heights.append(min(latency_s[crossover.a], latency_s[crossover.b]) / min(latency_s.values()))
        if max(heights) <= NEAR_LEAD:
            near.append((max(heights), crossover))
    return [crossover for _, crossover in sorted(near, key=lambda pair: pair[0])][:MOST_CROSSINGS]


def _again(survey: Survey, crossover: Crossover) -> Crossover | None:
    """The crossing as it is known by now: the nearest one of the same two."""
    pair = {crossover.a, crossover.b}
    same = [other for other in survey.draft.run.crossovers if {other.a, other.b} == pair and other.value is not None]
    return min(same, key=lambda other: abs((other.value or 0) - (crossover.value or 0)), default=None)


def _beside(survey: Survey, crossover: Crossover) -> tuple[Site, Site] | None:
    """The nearest sites on both sides of a crossing where both strategies are timed."""
    if crossover.value is None:
        return None
    both = [site for site in survey.draft.sites if {crossover.a, crossover.b} <= _latencies(survey, site).keys()]
    below = [site for site in both if site.point.at[crossover.axis] <= crossover.value]
    above = [site for site in both if site.point.at[crossover.axis] > crossover.value]
    return (below[-1], above[0]) if below and above else None


def _latencies(survey: Survey, site: Site) -> dict[str, float]:
    """Line → seconds of a call at a site."""
    here = {line_of(slug, survey.request.axes): seconds for slug, seconds in latencies_s(site.point).items()}
    return {**_flat(survey), **here}


def _flat(survey: Survey) -> dict[str, float]:
    """Lines that a swept option does not concern, with their latency: measured at one value, it holds at all."""
    return {
        line.slug: item.latency.median_s
        for line in lines([site.point for site in survey.draft.sites], survey.request.axes)
        for _, _, item in line.points
        if line.flat and item.outcome == "ok" and item.latency is not None
    }


def _slugs(survey: Survey, site: Site, along: Sequence[str]) -> list[str]:
    """The strategies that lines are at a site."""
    slugs = survey.request.slugs(site.point.at)
    return [slugs[line] for line in along]


def _more_processes(survey: Survey, site: Site, along: Sequence[str]) -> None:
    """Measure lines at a site in as many processes as a crossing wants."""
    comparison = survey.begun(site)
    timed = [slug for slug in _slugs(survey, site, along) if comparison.is_timed(slug)]
    if timed:
        survey.sample(site, timed, max(1, AT_POINT - min(map(comparison.processes, timed))))


def _between(low: int, high: int, least: float, most: float) -> int | None:
    """A whole number strictly between two points, at the geometric middle of a crossing's interval."""
    if high - low < 2:
        return None
    middle = (max(low, least, 1e-9) * max(min(high, most), 1e-9)) ** 0.5
    return min(max(round(middle), low + 1), high - 1)
