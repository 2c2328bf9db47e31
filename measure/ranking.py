"""Who is faster than whom: tie groups from levels, ordered by memory within. Pure functions of data."""

import math
from collections.abc import Mapping, Sequence

from measure.run import Analysis
from measure.statistics import Level, ratio


def groups(by_slug: Mapping[str, Level], analysis: Analysis, resolution: float) -> list[list[str]]:
    """Tie groups, fastest first.

    A strategy opens a new group when it is `separated` from the first of the current one.
    """
    found: list[list[str]] = []
    for slug in sorted(by_slug, key=lambda slug: (by_slug[slug].log_mean, slug)):
        if found and not separated(by_slug[slug], by_slug[found[-1][0]], analysis, len(by_slug), resolution):
            found[-1].append(slug)
        else:
            found.append([slug])
    return found


def separated(slower: Level, faster: Level, analysis: Analysis, strategies: int, resolution: float) -> bool:
    """Whether one of ``strategies`` is slower than another beyond chance and by more than the run can resolve.

    Welch's p has to be under (1 − confidence) / number of decisions between neighbours (Bonferroni), so that all
    decisions of a ranking together err with at most 1 − confidence.
    """
    difference = ratio(slower, faster, analysis.confidence)
    level = (1 - analysis.confidence) / max(1, strategies - 1)
    return difference.p < level and difference.ratio > 1 + resolution


def by_memory(tied: Sequence[str], peak_bytes: Mapping[str, int]) -> list[str]:
    """A tie group with those first that need less memory; within 1 % of the group's most, the order is left."""
    step = max([peak_bytes.get(slug, 0) for slug in tied], default=0) / 100 or 1.0
    return sorted(tied, key=lambda slug: round(peak_bytes[slug] / step) if slug in peak_bytes else math.inf)
