"""The strategies of a sweep that deserve further processes, and their points. Pure functions of its levels.

One process in some dozens is far off its strategy's pace, and every point begins with one of each. Where a swept option
has its values, all of them are of one case, so that all values of all strategies race for one lead, as the strategies
of a comparison do.
"""

import math

from measure.model.run import Analysis
from measure.statistics import ranking
from measure.sweep.evidence import Evidence, Timed

# More than so many that may lead at a point are not told apart.
MOST_LEADERS = 4
# A point of a line that is higher than both of its neighbours by this factor, or lower, is looked at again.
STANDS_OUT = 1.3


def leading(known: Evidence, analysis: Analysis) -> list[Timed]:
    """Over all points and strategies, the fastest, all whose ratio to it, at the low end of its interval, is within the
    tie margin, and all that the verdict would say to tie with it; fastest first. For points of one case, as those of a
    swept option are."""
    by_name = {f"{timed.place} {line.line.slug}": timed for line in known.lines for timed in line.timed}
    order = ranking.Order({name: timed.level for name, timed in by_name.items()}, analysis)
    return [
        by_name[name]
        for rank, name in enumerate(order.fastest_first)
        if rank == 0
        or order.ratio(name, order.fastest_first[0]).low < 1 + analysis.margin
        or not order.separated(name, order.fastest_first[0])
    ]


def doubtful(known: Evidence) -> list[Timed]:
    """Strategies that stand out from both neighbours on their line; worst first."""
    doubted = []
    for line in known.lines:
        for index, timed in enumerate(line.timed):
            neighbours = line.timed[max(0, index - 1) : index] + line.timed[index + 1 : index + 2]
            steps = [timed.level.log_mean - other.level.log_mean for other in neighbours]
            apart = min(map(abs, steps), default=0.0)
            if len(steps) == 2 and (min(steps) > 0 or max(steps) < 0) and apart > math.log(STANDS_OUT):
                doubted.append((apart, timed))
    return [timed for _, timed in sorted(doubted, key=lambda pair: -pair[0])]
