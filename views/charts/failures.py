"""Words for strategies that did not work at a point of a sweep, or were not run there. Pure."""

from collections.abc import Iterable

from measure.judge.lines import Line, readable
from measure.output.table import by_sentence
from measure.run import text
from measure.run.run import Measurement
from views.ui import look


def failed(item: Measurement) -> bool:
    """True if a strategy ended in a way that is marked: also where it was left out for a reason, but not where a person
    cancelled it."""
    return item.outcome not in ("ok", "not_run", "cancelled") or (item.outcome == "not_run" and item.error is not None)


def outcome(item: Measurement) -> str:
    """The outcome in words with its reason; that a strategy was not run the reason says itself."""
    reason = text.shortened(item.reason, look.MOST_SIGNS)
    return reason if reason and item.outcome == "not_run" else text.outcome(item.outcome, reason)


def by_reason(lines: Iterable[Line]) -> list[tuple[list[Line], str]]:
    """A sentence for each reason, with the points at which strategies failed, and these strategies."""
    sentences: list[tuple[Line, str]] = []
    for line in lines:
        ended = by_sentence((readable(point.at), outcome(item)) for _, point, item in line.points if failed(item))
        sentences += [(line, f"{'; '.join(places)}: {words}") for places, words in ended]
    return by_sentence(sentences)
