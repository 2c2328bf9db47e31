"""Progress while it measures: below the cell of a notebook results as they arrive, elsewhere lines on stderr."""

import html
import math
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

from mapbench import drawing, notebook
from measure.model import text
from measure.model.run import Measurement, Run
from measure.output import rows
from measure.output.sweep_table import where
from measure.runner import Snapshot
from measure.sweep.lines import leaders

# Seconds between two drawings: of results that are new, and of those that sharpen. A notebook's server and its browser
# may run on the cores that are measured.
_NEW_S, _SAME_S = 0.5, 3.0
# A full bar would say that it is over.
_ALMOST = 0.98


class Progress(Protocol):
    """Tells how it stands."""

    def say(self, words: str) -> None:
        """Tell what happens before anything is measured."""
        ...

    def look(self, snapshot: Snapshot) -> None:
        """Tell what is new; called several times a second."""
        ...

    def end(self, run: Run) -> None:
        """Tell that it is over."""
        ...


def of(quiet: bool) -> Progress:
    """Return what tells it here."""
    display = notebook.display()
    return _Nothing() if quiet else _Cell(display) if display is not None else _Lines()


class _Nothing:
    def say(self, words: str) -> None: ...

    def look(self, snapshot: Snapshot) -> None: ...

    def end(self, run: Run) -> None: ...


class _Lines:
    def __init__(self) -> None:
        self._last = ""

    def say(self, words: str) -> None:
        if words and words != self._last:
            self._last = words
            print(words, file=sys.stderr, flush=True)

    def look(self, snapshot: Snapshot) -> None:
        self.say(snapshot.message)

    def end(self, run: Run) -> None: ...


class _Cell:
    """One output below the cell, which is drawn anew."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None
        self._drawn = ""
        self._known: object = None
        self._at_s = -math.inf

    def say(self, words: str) -> None:
        self._draw(drawing.framed(_sentence(words)))

    def look(self, snapshot: Snapshot) -> None:
        known = _known(snapshot)
        if time.monotonic() - self._at_s >= (_SAME_S if known == self._known else _NEW_S):
            self._known = known
            self._draw(drawn(snapshot))

    def end(self, run: Run) -> None:
        self._draw(drawing.framed(_sentence(ended(run))))

    def _draw(self, shown: str) -> None:
        self._at_s = time.monotonic()
        if shown == self._drawn:
            return
        self._drawn = shown
        bundle = {"text/html": shown, "text/plain": ""}
        if self._handle is None:
            self._handle = self._display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def drawn(snapshot: Snapshot) -> str:
    """Return how a run stands, as HTML: a sentence, the share of its time, and what is known of each strategy."""
    parts = [_sentence(_standing(snapshot))]
    if snapshot.elapsed_s is not None and snapshot.remaining_s is not None:
        whole_s = snapshot.elapsed_s + snapshot.remaining_s
        share = min(_ALMOST, snapshot.elapsed_s / whole_s) if whole_s else 0.0
        parts.append(f'<div class="mb-bar"><div style="width:{share:.0%}"></div></div>')
    if snapshot.state == "running":
        parts.append(_strategies(snapshot) if snapshot.run.kind == "compare" else _points(snapshot.run))
    return drawing.framed(*parts)


def ended(run: Run) -> str:
    """Return the sentence that stays below the cell."""
    if run.kind == "sweep":
        what, known = "points", [point.status == "complete" for point in run.points]
    else:
        items = rows.strategies_of(run)
        what, known = "strategies", [item.outcome not in ("not_run", "cancelled") for item in items]
    return f"{drawing.ended(run) or 'Done'}: {sum(known)} of {len(known)} {what} were measured."


def _known(snapshot: Snapshot) -> object:
    """The figures that are known: a value that differs as soon as there is one more."""
    items = [(item.outcome, item.memory is None, item.latency is None) for item in snapshot.run.measurements]
    return snapshot.message, len(snapshot.rough_s), items, [point.status for point in snapshot.run.points]


def _sentence(words: str) -> str:
    return f'<p class="mb-case" role="status">{html.escape(words)}</p>'


def _standing(snapshot: Snapshot) -> str:
    parts = [snapshot.message or "measuring"]
    if snapshot.elapsed_s is not None:
        parts.append(f"{snapshot.elapsed_s:.0f} s")
    if snapshot.remaining_s is not None:
        parts.append(f"about {snapshot.remaining_s:.0f} s left" if snapshot.remaining_s >= 1 else "nearly done")
    return " · ".join(parts)


def _strategies(snapshot: Snapshot) -> str:
    """The strategies with what is known of them, the fastest first: an order that sharpens while one watches."""

    def seconds(item: Measurement) -> float:
        return item.latency.median_s if item.latency else snapshot.rough_s.get(item.strategy, math.inf)

    body = []
    for item in sorted(rows.strategies_of(snapshot.run), key=seconds):
        known_s = seconds(item)
        latency = text.seconds(known_s) if item.latency else "" if known_s == math.inf else text.rough_seconds(known_s)
        memory = text.size(item.memory.peak_bytes) if item.memory else ""
        stage = snapshot.stages.get(item.strategy, item.stage)
        ended = item.outcome not in ("ok", "not_run")
        body.append(
            [
                drawing.cell(drawing.strategy(item.strategy, item.mapper, item.mode)),
                drawing.cell(text.OUTCOMES.get(item.outcome, item.outcome) if ended else html.escape(stage)),
                drawing.cell(latency),
                drawing.cell(memory),
            ]
        )
    return drawing.grid(("strategy", "", "latency", "peak memory"), body)


def _points(run: Run) -> str:
    """The points of a sweep that are done, with who leads there."""
    body = [
        [
            drawing.cell(html.escape(where(point))),
            drawing.cell(html.escape(point.status)),
            drawing.cell(html.escape(" = ".join(leaders(point, run.axes)))),
        ]
        for point in run.points
    ]
    return drawing.grid((", ".join(axis.name for axis in run.axes), "", "leads"), body)
