"""Words for strategies that did not work at a point of a sweep, or were not run there. Pure."""

import re
from collections.abc import Callable, Sequence

from measure.model.run import Measurement, Point, Run
from measure.sweep import omissions
from measure.sweep.lines import Line, lines
from views.ui import look

# A number with its unit, if it has one.
_AMOUNT = re.compile(r"\d[\d,. ]*(?<=\d)(?: (?:[µnm]?s|min|h|[KMGT]?i?B)\b)?")


def failed(item: Measurement) -> bool:
    """True if a strategy ended in a way that is marked: also where it was left out for a reason."""
    return item.outcome not in ("ok", "not_run") or (item.outcome == "not_run" and item.error is not None)


def outcome(item: Measurement) -> str:
    """Return the outcome in words, with its reason."""
    word = look.OUTCOMES.get(item.outcome, item.outcome)
    return f"{word}: {text}" if (text := reason(item)) else word


def reason(item: Measurement) -> str:
    """Return the reason alone, without the words that it is one for not being run."""
    return omissions.reason(item.error) if item.error else ""


def did_not_work(run: Run) -> list[tuple[Line, str]]:
    """Return a sentence for each strategy and reason, with the points at which the strategy did not work."""
    return _by_reason(run, lambda item: outcome(item) if failed(item) and item.outcome != "not_run" else "")


def not_run(run: Run) -> list[tuple[Line, str]]:
    """Return a sentence for each strategy and reason, with the points at which the strategy was not run."""
    return _by_reason(run, lambda item: reason(item) if item.outcome == "not_run" else "")


def _by_reason(run: Run, reason_of: Callable[[Measurement], str]) -> list[tuple[Line, str]]:
    sentences = []
    for line in lines(run.points, run.axes):
        by_kind: dict[str, list[tuple[str, str]]] = {}
        for _, point, item in line.points:
            if text := reason_of(item):
                by_kind.setdefault(kind(text), []).append((place(point), text))
        sentences += [
            (line, f"{'; '.join(at for at, _ in reasons)}: {joined([text for _, text in reasons])}")
            for reasons in by_kind.values()
        ]
    return sentences


def kind(text: str) -> str:
    """Return a reason without its amounts: reasons of one kind are said together."""
    return _AMOUNT.sub("", text)


def joined(reasons: Sequence[str]) -> str:
    """Return reasons of one kind as one: «about 31.8 s to 2.22 min of 60 s»."""
    amounts = [_AMOUNT.findall(text) for text in (reasons[0], reasons[-1])]
    ends = iter(zip(*amounts, strict=True))

    def both(match: re.Match[str]) -> str:
        first, last = next(ends)
        return first if first == last else f"{first} to {last}"

    return _AMOUNT.sub(both, reasons[0])


def place(point: Point) -> str:
    """Return a point by its axes: «batch 1,000, side 16»."""
    return ", ".join(f"{name} {value:,}" for name, value in point.at.items())
