"""Words for strategies that did not work at a point of a sweep, or were not run there. Pure."""

from collections.abc import Callable, Hashable, Iterable

from msgspec import UNSET

from measure.model.run import Error, Measurement, Point, Run
from measure.output.notes import by_sentence
from measure.sweep import omissions
from measure.sweep.lines import Line, lines
from measure.sweep.places import readable
from views.ui import look


def failed(item: Measurement) -> bool:
    """True if a strategy ended in a way that is marked: also where it was left out for a reason, but not where a person
    cancelled it."""
    return item.outcome not in ("ok", "not_run", "cancelled") or (item.outcome == "not_run" and item.error is not None)


def outcome(item: Measurement) -> str:
    """Return the outcome in words, with its reason."""
    return _outcome([item])


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
    run: Run, counts: Callable[[Measurement], bool], words: Callable[[list[Measurement]], str]
) -> list[tuple[list[Line], str]]:
    sentences: list[tuple[Line, str]] = []
    for line in lines(run.points, run.axes):
        items = [(readable(point.at), item) for _, point, item in line.points if counts(item)]
        sentences += [(line, f"{'; '.join(places)}: {words(alike)}") for places, alike in _alike(items)]
    return by_sentence(sentences)


def _alike(items: Iterable[tuple[str, Measurement]]) -> list[tuple[list[str], list[Measurement]]]:
    """Return measurements and their names in groups of one outcome and one kind of error."""
    groups: dict[Hashable, tuple[list[str], list[Measurement]]] = {}
    for name, item in items:
        kind = omissions.kind(item.error) if item.error else None
        names, alike = groups.setdefault((item.outcome, kind), ([], []))
        names.append(name)
        alike.append(item)
    return list(groups.values())


def _outcome(alike: list[Measurement], form: str = "{}: {}") -> str:
    """Return the outcome of `_alike` measurements with its reason, in the form of both."""
    first = alike[0]
    word, reason = look.OUTCOMES.get(first.outcome, first.outcome), _reason(alike)
    if not reason or _is_whole(first.outcome, first.error):
        return reason or word
    return form.format(word, reason)


def _reason(alike: list[Measurement]) -> str:
    errors = [item.error for item in alike if item.error]
    return omissions.reason(*errors) if errors else ""


def _is_whole(outcome: str, error: Error | None) -> bool:
    """True if the message says itself that the strategy was not run, as those of earlier versions do."""
    return outcome == "not_run" and error is not None and error.values is UNSET
