"""After how many calls a compiled strategy has paid off, in words: a table for the page, and lines of text."""

import math
from dataclasses import dataclass

from measure.judge import break_even
from measure.run import text
from measure.run.run import BreakEven, Run

# In a few lines of text there is room for so many strategies.
_MOST_SENTENCES = 3


@dataclass(frozen=True)
class Table:
    """Break-even points of compiled strategies (rows) against eager ones (columns), both as slugs in the order of the
    ranking: ``cells[row][column]``."""

    compiled: tuple[str, ...]
    eager: tuple[str, ...]
    cells: tuple[tuple[BreakEven, ...], ...]


def table(run: Run) -> Table:
    """The break-even points of a run, computed anew, since older files hold less."""
    place = {slug: index for index, slug in enumerate(slug for group in run.ranking for slug in group)}
    by_slug = {slug: {pair.against: pair for pair in pairs} for slug, pairs in break_even.pairs(run).items()}

    def rank(slug: str) -> int:
        return place.get(slug, len(place))

    eager = sorted({slug for pairs in by_slug.values() for slug in pairs}, key=lambda slug: (rank(slug), slug))
    compiled = sorted(by_slug, key=rank) if eager else []
    cells = tuple(tuple(by_slug[slug][other] for other in eager) for slug in compiled)
    return Table(tuple(compiled), tuple(eager), cells)


def sentences(run: Run) -> list[str]:
    """A line for each of the fastest compiled strategies: the leaders, or else the first."""
    rows = table(run)
    lines = list(zip(rows.compiled, rows.cells, strict=True))
    leading = [line for line in lines if run.ranking and line[0] in run.ranking[0]] or lines[:1]
    return [
        f"Break even of {slug}, first calls included: {'; '.join(_against(pair) for pair in pairs)}."
        for slug, pairs in leading[:_MOST_SENTENCES]
    ]


def _against(pair: BreakEven) -> str:
    """``after 110 [66, 356] calls against loop.eager``."""
    when = f"after {words(pair)} calls" if pair.pays_off == "calls" and pair.calls is not None else words(pair)
    return f"{when} against {pair.against}"


def words(pair: BreakEven) -> str:
    """``110 [66, 356]``, ``from the first call``, ``only for the first 12 [5, 40]``, ``never``, ``cannot be told``."""
    if pair.pays_off == "from_first":
        return "from the first call"
    if pair.pays_off == "never":
        return "never"
    if pair.pays_off == "undecided" or pair.calls is None:
        return f"cannot be told (≥ {_whole(pair.low)})" if pair.low and pair.low > 1 else "cannot be told"
    interval = f"{_whole(pair.calls)} [{_whole(pair.low)}, {_whole(pair.high)}]"
    return f"only for the first {interval}" if pair.pays_off == "until" else interval


def _whole(calls: float | None) -> str:
    """The first whole call from ``calls`` on, three digits of it; nothing is sure where there is none."""
    if calls is None or not math.isfinite(calls):
        return "∞"
    whole = math.ceil(calls - 1e-9)
    if whole >= 999_500:
        return f"{text.number(whole / 1e6)} million"
    return f"{round(whole, min(0, 2 - math.floor(math.log10(max(1, whole))))):,}".replace(",", " ")
