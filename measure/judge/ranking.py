"""The order of strategies: tie groups from levels, ordered by memory within. Pure functions of data."""

import math
from collections.abc import Mapping, Sequence

from measure.judge.intervals import Level, difference, ratio
from measure.run.run import Analysis


class Order:
    """Strategies (or other things that have a `Level`), fastest first, and which of them the data separate.

    Two are separated where the interval of their ratio leaves out 1. All comparisons with the fastest, whichever that
    is, hold together with the analysis' confidence: each has Bonferroni's share («multiple comparisons with the best»,
    Hsu 1984).
    """

    def __init__(self, levels: Mapping[str, Level], analysis: Analysis) -> None:
        self.fastest_first = sorted(levels, key=lambda name: (levels[name].log_mean, name))
        self._levels = levels
        self._of_each = 1 - (1 - analysis.confidence) / max(1, len(levels) - 1)

    def separated(self, slower: str, faster: str) -> bool:
        """True if the one is slower than the other beyond chance."""
        return ratio(self._levels[slower], self._levels[faster], self._of_each).low > 1

    @property
    def resolution(self) -> float:
        """The smallest difference (relative) that is told between the two fastest; 0 of a single one."""
        if len(self.fastest_first) < 2:
            return 0.0
        first, second = (self._levels[name] for name in self.fastest_first[:2])
        return math.expm1(difference(second, first).half(self._of_each))

    def within(self, factor: float) -> list[str]:
        """The fastest, and all that are less than ``factor`` times slower, fastest first."""
        most = min((level.log_mean for level in self._levels.values()), default=0.0) + math.log(factor)
        return [name for name in self.fastest_first if self._levels[name].log_mean < most]

    def groups(self) -> list[list[str]]:
        """Tie groups, fastest first: the fastest of those that are left, and all up to the slowest that is not
        separated from it. So none is called slower than a leader that it may tie with, and ranks are in the order of
        latencies, although one between them may be separated."""
        groups, left = [], self.fastest_first
        while left:
            ties = max(place for place, name in enumerate(left) if place == 0 or not self.separated(name, left[0]))
            groups.append(left[: ties + 1])
            left = left[ties + 1 :]
        return groups


def by_memory(tied: Sequence[str], peak_bytes: Mapping[str, int]) -> list[str]:
    """A tie group with those first that need less memory; those within 1 % of the least of them keep their order, and
    those whose memory is not known come last."""
    left, ordered = [slug for slug in tied if slug in peak_bytes], list[str]()
    while left:
        least = min(peak_bytes[slug] for slug in left)
        ordered += [slug for slug in left if peak_bytes[slug] <= 1.01 * least]
        left = [slug for slug in left if slug not in ordered]
    return ordered + [slug for slug in tied if slug not in peak_bytes]


def ranks(groups: Sequence[Sequence[str]]) -> dict[str, int]:
    """Each slug's rank: 1 plus the number of strategies in faster tie groups, so that ties share theirs: 1, 1, 3."""
    by_slug: dict[str, int] = {}
    for group in groups:
        rank = len(by_slug) + 1
        by_slug.update(dict.fromkeys(group, rank))
    return by_slug
