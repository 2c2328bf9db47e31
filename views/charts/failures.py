"""Words for strategies that did not work at a point of a sweep, or were not run there. Pure."""

from collections.abc import Callable, Iterable

from measure.judge.lines import Line, lines, readable
from measure.output.notes import by_sentence
from measure.run.run import Measurement, Point, Run
from views.ui import look


def failed(item: Measurement) -> bool:
    """True if a strategy ended in a way that is marked: also where it was left out for a reason, but not where a person
    cancelled it."""
    return item.outcome not in ("ok", "not_run", "cancelled") or (item.outcome == "not_run" and item.error is not None)


def outcome(item: Measurement) -> str:
    """Return the outcome in words, with its reason."""
    return _outcome(item)


def did_not_work(run: Run) -> list[tuple[list[Line], str]]:
    """Return a sentence for each reason, with the points at which strategies did not work and the strategies."""
    return _by_reason(run, lambda item: failed(item) and item.outcome != "not_run", _outcome)


def not_run(run: Run) -> list[tuple[list[Line], str]]:
    """Return a sentence for each reason, with the points at which strategies were not run and the strategies."""
    return _by_reason(run, lambda item: failed(item) and item.outcome == "not_run", _reason)


def without(point: Point) -> str:
    """Name the strategies that did not compete at a point, and say why: those of one reason together."""
    missing = [item for item in point.measurements if failed(item) or item.outcome == "cancelled"]
    items = [(item.strategy, item) for item in missing if item.twin_of is None]
    return "; ".join(f"{', '.join(slugs)}: {_outcome(alike, '{} ({})')}" for slugs, alike in _alike(items))


def _by_reason(
    run: Run, counts: Callable[[Measurement], bool], words: Callable[[Measurement], str]
) -> list[tuple[list[Line], str]]:
    sentences: list[tuple[Line, str]] = []
    for line in lines(run.points, run.axes):
        items = [(readable(point.at), item) for _, point, item in line.points if counts(item)]
        sentences += [(line, f"{'; '.join(places)}: {words(alike)}") for places, alike in _alike(items)]
    return by_sentence(sentences)


def _alike(items: Iterable[tuple[str, Measurement]]) -> list[tuple[list[str], Measurement]]:
    """Return the names of measurements that ended alike, with one of these."""
    groups: dict[tuple[str, str], tuple[list[str], Measurement]] = {}
    for name, item in items:
        groups.setdefault((item.outcome, item.error.message if item.error else ""), ([], item))[0].append(name)
    return list(groups.values())


def _reason(item: Measurement) -> str:
    return item.error.message if item.error else ""


def _outcome(item: Measurement, form: str = "{}: {}") -> str:
    """Return an outcome with its reason, in the form of both. That a strategy was not run its reason says itself."""
    word, reason = look.OUTCOMES.get(item.outcome, item.outcome), _reason(item)
    if not reason or item.outcome == "not_run":
        return reason or word
    return form.format(word, reason)
