"""The order of strategies: tie groups from levels, ordered by memory within. Pure functions of data."""

from collections.abc import Mapping, Sequence

from measure.model.run import Analysis
from measure.statistics.intervals import Level, Ratio, ratio


class Order:
    """Strategies (or other things that have a `Level`), fastest first, and which of them the data separate.

    All decisions together err with at most 1 − confidence, whichever strategies are equal in truth, and although who is
    compared with whom is looked up in the data. It is a closed test (Marcus, Peritz and Gabriel 1976) in the manner of
    Ryan, Einot and Gabriel: two strategies that are ``d`` ranks apart, of ``n``, need a Welch's p under
    2·(1 − confidence) / (n·d), Bonferroni's share of all pairs of a range of ranks; and every wider range that holds
    both has to hold a difference too, between its own ends, the two, or an end and one of the two.

    Beyond chance is not enough: a difference also has to be larger than what the run can resolve, and two that are
    shown to differ by less than the margin tie.
    """

    def __init__(self, levels: Mapping[str, Level], analysis: Analysis, resolution: float) -> None:
        self.fastest_first = sorted(levels, key=lambda name: (levels[name].log_mean, name))
        self._places = {name: place for place, name in enumerate(self.fastest_first)}
        self._levels = [levels[name] for name in self.fastest_first]
        self._analysis, self._resolution = analysis, resolution
        self._ratios: dict[tuple[int, int], Ratio] = {}

    def ratio(self, slower: str, faster: str) -> Ratio:
        """Latency of the one over that of the other, which is no slower."""
        return self._ratio(self._places[faster], self._places[slower])

    def separated(self, slower: str, faster: str) -> bool:
        """True if the one is slower than the other beyond chance, by more than the run can resolve, and by more than
        the margin or at least not surely by less."""
        fast, slow = self._places[faster], self._places[slower]
        apart = self._ratio(fast, slow)
        if fast == slow or apart.ratio <= 1 + self._resolution or equivalent(apart, self._analysis.margin):
            return False
        count = len(self._levels)
        bound = 2 * (1 - self._analysis.confidence) / count
        if apart.p < bound / (count - 1):
            return True  # the two alone hold a difference that is enough for every range
        return all(
            any(
                self._ratio(*pair).p < bound / (last - first)
                for pair in ((fast, slow), (first, last), (first, slow), (fast, last))
            )
            for first in range(fast + 1)
            for last in range(slow, count)
        )

    def groups(self) -> list[list[str]]:
        """Tie groups, fastest first: the fastest of those that are left with all that are not separated from it, so
        that none is called slower than a leader that it may tie with, although one between them is."""
        groups, left = [], self.fastest_first
        while left:
            groups.append([name for name in left if name == left[0] or not self.separated(name, left[0])])
            left = [name for name in left if name not in groups[-1]]
        return groups

    def _ratio(self, fast: int, slow: int) -> Ratio:
        if (fast, slow) not in self._ratios:
            self._ratios[fast, slow] = ratio(self._levels[slow], self._levels[fast], self._analysis.confidence)
        return self._ratios[fast, slow]


def equivalent(difference: Ratio, margin: float) -> bool:
    """True if two are shown to differ by less than the margin."""
    return 1 / (1 + margin) < difference.low and difference.high < 1 + margin


def by_memory(tied: Sequence[str], peak_bytes: Mapping[str, int]) -> list[str]:
    """A tie group with those first that need less memory; those within 1 % of the least of them keep their order, and
    so do those whose memory is not known, which come last."""
    known = sorted((slug for slug in tied if slug in peak_bytes), key=lambda slug: peak_bytes[slug])
    ordered: list[str] = []
    while known:
        alike = {slug for slug in known if peak_bytes[slug] <= 1.01 * peak_bytes[known[0]]}
        ordered += [slug for slug in tied if slug in alike]
        known = [slug for slug in known if slug not in alike]
    return ordered + [slug for slug in tied if slug not in peak_bytes]
