"""The reasons for ties that intervals, as they are shown, do not explain. Pure."""

from measure.model import text
from measure.model.run import Measurement, Run
from measure.statistics import intervals
from measure.statistics.levels import levels_of, resolution, shown_levels
from measure.statistics.ranking import equivalent


def apart(run: Run) -> dict[str, str]:
    """The strategies that tie with a faster one although the interval of neither reaches the other's, each with the
    reason, as the end of a sentence. A single process has no interval."""
    confidence = run.analysis.confidence
    told = resolution(run.control, levels_of(run.measurements), confidence)
    shown = shown_levels(run)
    by_slug = {item.strategy: item for item in run.measurements}
    reasons = {}
    for group in run.ranking:
        known = [by_slug[slug] for slug in group if slug in shown]
        timed = sorted((item for item in known if _has_interval(item)), key=_median_s)
        for item in timed[1:]:
            if _low_s(item) <= _high_s(timed[0]):
                continue
            ratio = intervals.ratio(shown[item.strategy], shown[timed[0].strategy], confidence)
            if ratio.ratio <= 1 + told:
                reasons[item.strategy] = f"differing by less than the {text.percent(told)} that this run can tell"
            elif equivalent(ratio, run.analysis.margin):
                reasons[item.strategy] = f"differing by less than {text.percent(run.analysis.margin)}"
            else:
                reasons[item.strategy] = "too few processes to separate so many strategies"
    return reasons


def _has_interval(item: Measurement) -> bool:
    return item.latency is not None and sum(bool(each.samples_s) for each in item.replicas) != 1


def _median_s(item: Measurement) -> float:
    return item.latency.median_s if item.latency else 0.0


def _low_s(item: Measurement) -> float:
    return item.latency.low_s if item.latency else 0.0


def _high_s(item: Measurement) -> float:
    return item.latency.high_s if item.latency else 0.0
