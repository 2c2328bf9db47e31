"""Measuring the grid: of one axis every point, the smallest first; of two axes as `winners` asks for them.

Each point gets its minimum, one process of every strategy.
"""

from measure.model.run import Point
from measure.sweep import doubts, winners
from measure.sweep.lines import latencies_s
from measure.sweep.sites import Site, strategies_at
from measure.sweep.survey import Survey


def measure_line(survey: Survey) -> None:
    """Measure the points of one axis as long as there is time."""
    _first_line(survey)
    waiting = survey.draft.waiting()
    for number, site in enumerate(waiting):
        if survey.left_s <= 0:
            return
        survey.measure(site, survey.left_s / (len(waiting) - number))


def _first_line(survey: Survey) -> None:
    """Measure the strategy that is quickest to be measured at two points, so that a line can be seen soon."""
    if any(site.taken for site in survey.draft.sites):
        return
    sites = survey.draft.waiting()[:2]
    strategies = []
    for site in sites:
        left_out = survey.left_out(site)
        at_site = strategies_at(site, survey.request)
        strategies.append({line: slug for line, slug in at_site.items() if slug not in left_out})
    if len(sites) < 2 or not (shared := strategies[0].keys() & strategies[1].keys()):
        return
    estimates = [survey.comparison(site).estimates for site in sites]

    def seconds(line: str) -> float:
        own = [known[slugs[line]] for known, slugs in zip(estimates, strategies, strict=True)]
        return sum(estimate.first_call_s + estimate.latency_s for estimate in own)

    quickest = min(sorted(shared), key=seconds)
    for site, slugs in zip(sites, strategies, strict=True):
        comparison = survey.begun(site)
        comparison.look([slugs[quickest]])
        comparison.time(survey.left_s, [slugs[quickest]])


def fill_map(survey: Survey) -> None:
    """Measure cells of two axes until the winners of the others follow, or as long as there is time."""
    rows, columns = survey.request.axes
    cells = {
        (rows.values.index(site.point.at[rows.name]), columns.values.index(site.point.at[columns.name])): site
        for site in survey.draft.sites
    }
    while survey.left_s > 0:
        known = {
            cell: tuple(site.point.ranking[0]) if site.point.ranking else ()
            for cell, site in cells.items()
            if site.point.status == "complete"
        }
        still_open = [cell for cell, site in cells.items() if site.point.status in ("waiting", "running")]
        if not still_open:
            return
        leads = {cell: lead for cell in known if (lead := _lead(cells[cell].point)) is not None}
        cell = winners.next_cell(known, still_open, leads)
        if cell is None:
            for rest in still_open:
                _infer(survey, cells[rest], winners.inferred(rest, known))
            return
        survey.measure(cells[cell], survey.left_s / 4)
        # Cells are inferred from this one, and one process in some dozens is far off its strategy's pace.
        doubts.doubt_leaders(survey, cells[cell])
        doubts.tell_leaders_apart(survey, cells[cell])


def _infer(survey: Survey, site: Site, leaders: list[str]) -> None:
    first, *others = leaders
    said = f"{first} wins" if not others else f"{', '.join([first, *others[:-1]])} and {others[-1]} tie"
    survey.draft.settle(
        site,
        status="skipped",
        reason=f"inferred: all around it {said}",
        ranking=[leaders],
        verdict=f"{said} here, inferred from the points around it.",
    )


def _lead(point: Point) -> float | None:
    """The factor by which the leader is faster than the first that does not tie with it; None where all do."""
    latencies = latencies_s(point)
    own = [latencies[slug] for slug in point.ranking[0]] if point.ranking else []
    others = [latencies[group[0]] for group in point.ranking[1:]]
    return min(others) / min(own) if own and others else None
