"""Words for strategies that did not work at a point of a sweep, or were not run there. Pure."""

from collections.abc import Iterable

from measure.judge.lines import Line, readable
from measure.output.notes import by_sentence
from measure.run import text
from measure.run.run import Measurement, Point


def failed(item: Measurement) -> bool:
    """True if a strategy ended in a way that is marked: also where it was left out for a reason, but not where a person
    cancelled it."""
    return item.outcome not in ("ok", "not_run", "cancelled") or (item.outcome == "not_run" and item.error is not None)


def outcome(item: Measurement) -> str:
    """Return the outcome in words with its reason; that a strategy was not run the reason says itself."""
    word, reason = text.OUTCOMES.get(item.outcome, item.outcome), item.error.message if item.error else ""
    return reason if reason and item.outcome == "not_run" else ": ".join(filter(None, (word, reason)))


def by_reason(lines: Iterable[Line]) -> list[tuple[list[Line], str]]:
    """Return a sentence for each reason, with the points at which strategies failed, and these strategies."""
    sentences: list[tuple[Line, str]] = []
    for line in lines:
        ended = by_sentence((readable(point.at), outcome(item)) for _, point, item in line.points if failed(item))
        sentences += [(line, f"{'; '.join(places)}: {words}") for places, words in ended]
    return by_sentence(sentences)


def without(point: Point) -> str:
    """Name the strategies that did not compete at a point, and say why: those of one reason together."""
    missing = [item for item in point.measurements if failed(item) or item.outcome == "cancelled"]
    ended = by_sentence((item.strategy, outcome(item)) for item in missing if item.twin_of is None)
    return "; ".join(f"{', '.join(slugs)}: {words}" for slugs, words in ended)
