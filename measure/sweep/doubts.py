"""Further processes where one of each does not decide: for what stands out from its line, and for leaders that tie.

The values of a swept option are of one case: there the leaders of all points take turns in the same rounds.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from measure.engine.record import View
from measure.engine.turns import FAR
from measure.model.forecast import process_s
from measure.model.run import Point
from measure.sweep import contenders
from measure.sweep.evidence import Timed
from measure.sweep.lines import latencies_s
from measure.sweep.sites import AT_POINT, Site, fewest_processes, strategies_at
from measure.sweep.survey import Survey

# More values of an option that lead than so many are not told apart.
MOST_VALUES = 6
# With more processes others may turn out to tie with the leader: so often is looked.
LOOKS = 2
# So many doubtful latencies are measured again, in this share of the budget; and those for which one more process takes
# more than another share are not.
MOST_DOUBTED = 6
DOUBTS_SHARE = 0.1
DOUBT_SHARE = 0.04


def doubt(survey: Survey) -> None:
    """A second process, and if need be a third, for what stands out from its line."""
    budget_s = survey.request.base.budget_s
    spared_s = max(0.0, survey.left_s - DOUBTS_SHARE * budget_s)
    for processes in range(2, AT_POINT + 1):
        for timed in contenders.doubtful(survey.draft.evidence)[:MOST_DOUBTED]:
            is_quick = _another_process_s(timed) < DOUBT_SHARE * budget_s
            if survey.left_s > spared_s and timed.processes < processes and is_quick:
                survey.sample(survey.draft.sites[timed.place], [timed.measurement.strategy], 1)
        survey.draft.analyse()


def _another_process_s(timed: Timed) -> float:
    return process_s(timed.measurement.first_call_s or 0.0, math.exp(timed.level.log_mean))


def doubt_leaders(survey: Survey, site: Site) -> None:
    """A second process for what may lead at a point, by one process of each."""
    comparison = survey.begun(site)
    near = comparison.within(FAR)[: contenders.MOST_LEADERS]
    few = [slug for slug in near if comparison.processes(slug) < 2]
    if len(near) > 1 and few:
        survey.sample(site, few, 1)


def tell_leaders_apart(survey: Survey, site: Site) -> None:
    """More processes of leaders that tie at a point."""
    if site.point.status != "complete":
        return
    tied = site.point.ranking[0] if site.point.ranking else []
    if not site.begun and (len(tied) < 2 or fewest_processes(site.point, tied) >= AT_POINT):
        return  # taken over, and nothing is open
    comparison = survey.begun(site)
    leaders = comparison.contenders()[: contenders.MOST_LEADERS]
    few = [slug for slug in leaders if comparison.processes(slug) < AT_POINT]
    if len(leaders) > 1 and few:
        survey.sample(site, leaders, AT_POINT - min(comparison.processes(slug) for slug in few))


def sample_lines(survey: Survey, lines: Sequence[str]) -> bool:
    """Further processes of lines at every point, in turns. False where there was no time for any."""
    sampled = False
    for _ in range(AT_POINT):
        for site in survey.draft.sites:
            slugs = strategies_at(site, survey.request)
            timed = [slugs[line] for line in lines if line in slugs and latencies_s(site.point).get(slugs[line])]
            if timed and survey.left_s > 0:
                survey.sample(site, timed, 1)
                sampled = True
        survey.draft.analyse()
    return sampled


def tell_values_apart(survey: Survey) -> None:
    """More processes of what ties for the lead over all values of a swept option."""
    for _ in range(LOOKS):
        leading = contenders.leading(survey.draft.evidence, survey.draft.run.analysis)[:MOST_VALUES]
        few = [timed for timed in leading if timed.processes < AT_POINT]
        if not few or survey.left_s <= 0:
            return
        _sample_together(survey, few, AT_POINT - min(timed.processes for timed in few))
        survey.draft.analyse()


def _sample_together(survey: Survey, few: Sequence[Timed], processes: int) -> None:
    """Measure strategies of several values of an option in so many further processes, in the same rounds."""
    sites = {timed.measurement.strategy: survey.draft.sites[timed.place] for timed in few}
    comparisons = {slug: survey.begun(site) for slug, site in sites.items()}

    def say(view: View) -> None:
        # Its results are those of the points in the end.
        survey.draft.say(f"values that lead: {view.message}", round_number=view.round_number)

    together = survey.comparisons.make(replace(survey.request.base, strategies=tuple(sites)), say)
    try:
        known = [comparison.measurement(slug) for slug, comparison in comparisons.items()]
        together.begin(survey.started_s, {}, Point(at={}, measurements=known))
        try:
            together.time_more(list(sites), processes, survey.left_s)
        finally:
            # What was sampled before a cancel is kept.
            for slug, comparison in comparisons.items():
                comparison.adopt(together.measurement(slug))
                survey.finish(sites[slug])
    finally:
        together.end()
