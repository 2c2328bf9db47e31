"""Who is sampled next, who gets more processes, and when it is enough: the rules of racing, as functions of data."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from measure.run import Analysis
from measure.statistics import Level, ratio


@dataclass(frozen=True)
class Rules:
    """How much is sampled. Each constant is a trade of time against certainty, checked by the benchmark script."""

    scout_rounds: int = 5  # everybody's first rounds, with one process each
    replicas: int = 5  # processes of a contender: with 2 or 3, intervals are not honest
    least_rounds: int = 10  # rounds in which all processes of the contenders take part
    most_rounds: int = 30  # beyond, the spread between processes dominates and more rounds add nothing
    # A sample of a slow strategy takes this share of the budget at most, all its rounds together.
    slow_share: float = 0.15


def shuffled(subjects: Iterable[int], seed: int, round_number: int) -> list[int]:
    """A fresh random order for each round, reproducible from the run's seed."""
    order = sorted(subjects)
    random.Random(seed * 1_000_003 + round_number).shuffle(order)
    return order


def scout_rounds(rules: Rules, call_s: float, budget_s: float) -> int:
    """Rounds for a strategy while scouting: fewer where a call is long, never none."""
    affordable = int(rules.slow_share * budget_s / max(call_s, 1e-9))
    return max(1, min(rules.scout_rounds, affordable))


def contenders(by_slug: Mapping[str, Level], analysis: Analysis) -> list[str]:
    """Strategies that may still be the fastest or tie with it, fastest first: all whose ratio to the leader, at the
    low end of its interval, is within the margin. The others are clear and rest."""
    ordered = sorted(by_slug, key=lambda slug: (by_slug[slug].log_mean, slug))
    return [
        slug
        for slug in ordered
        if ratio(by_slug[slug], by_slug[ordered[0]], analysis.confidence).low < 1 + analysis.margin
    ]


def decided(by_slug: Mapping[str, Level], racing: Sequence[str], analysis: Analysis, resolution: float) -> bool:
    """Whether each contender is separated from the leader, or shown equivalent to it within the margin."""
    ordered = sorted(racing, key=lambda slug: by_slug[slug].log_mean)
    level = (1 - analysis.confidence) / max(1, len(ordered) - 1)
    for slug in ordered[1:]:
        difference = ratio(by_slug[slug], by_slug[ordered[0]], analysis.confidence)
        separated = difference.p < level and difference.ratio > 1 + resolution
        equivalent = 1 - analysis.margin < difference.low and difference.high < 1 + analysis.margin
        if not separated and not equivalent:
            return False
    return True


def cohorts(bytes_by_slug: Mapping[str, int], room: int) -> list[list[str]]:
    """Strategies that can live at the same time. Where not all can, every cohort has the same anchor, the strategy
    that needs the least: a change of the machine's pace between cohorts shows on it."""
    slugs = list(bytes_by_slug)
    if sum(bytes_by_slug.values()) <= room or len(slugs) < 2:
        return [slugs]
    anchor = min(slugs, key=lambda slug: bytes_by_slug[slug])
    found: list[list[str]] = []
    free = 0
    for slug in slugs:
        if slug == anchor:
            continue
        if not found or bytes_by_slug[slug] > free:
            found.append([anchor])
            free = room - bytes_by_slug[anchor]
        found[-1].append(slug)
        free -= bytes_by_slug[slug]
    return found


def replicas(entered: Sequence[str], alive: Sequence[str], wanted: int) -> list[str]:
    """The processes still to be started so that each strategy has ``wanted``, one of each strategy after the other."""
    missing = {slug: wanted - alive.count(slug) for slug in entered}
    return [slug for number in range(wanted) for slug in entered if missing[slug] > number]


def batches(wanted: Sequence[str], live_bytes: Callable[[str], int], free: int, room: int) -> list[list[str]]:
    """``wanted`` cut into batches that fit: the first into what is ``free`` beside the living, others into ``room``."""
    found: list[list[str]] = [[]]
    for slug in wanted:
        if live_bytes(slug) > free and (found[-1] or free < room):
            found.append([])
            free = room
        found[-1].append(slug)
        free -= live_bytes(slug)
    return found
