"""Where the names beside points go: clear of each other, of marks and of curves, as far as there is room. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

# Pixels: of a letter and a line of a small font, and of the marks, the rings among them, that names keep clear of.
_LETTER, _LINE = 5.8, 12
_MARK, RING = 6, 10
# What covering costs, in the same unit as a pixel's distance of a name from its point.
_OUTSIDE, _ON_NAME, _ON_MARK, _ON_CURVE, _ON_LINE = 4000, 2000, 1000, 90, 25
# How far a name that has to be somewhere may be moved up or down.
_SHIFTS = tuple(sign * step for step in range(16, 145, 16) for sign in (1, -1))
_SAMPLES = 60  # of each straight part of a curve

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Side:
    """How a text is set at its point: as Vega names it, with pixels to the right and down."""

    align: Literal["left", "right", "center"]
    baseline: Literal["top", "middle", "bottom"]
    dx: int
    dy: int


# In the order of preference; a ring is between a point and its name.
SIDES = {
    "right": Side("left", "middle", 13, 0),
    "left": Side("right", "middle", -13, 0),
    "below": Side("center", "top", 0, 12),
    "above": Side("center", "bottom", 0, -12),
    "upper right": Side("left", "bottom", 9, -7),
    "lower left": Side("right", "top", -9, 7),
    "upper left": Side("right", "bottom", -9, -7),
    "lower right": Side("left", "top", 9, 7),
}


@dataclass(frozen=True)
class Name:
    """A text at a point, in pixels from the upper left corner. ``must``: it is placed even where there is no room."""

    x: float
    y: float
    text: str
    must: bool


@dataclass(frozen=True)
class Place:
    """Beside its point; ``shift``: pixels that the text is moved down."""

    side: str
    shift: int
    box: Box


def place(
    names: Sequence[Name],
    size: tuple[float, float],
    *,
    marks: Iterable[tuple[float, float]] = (),
    rings: Iterable[tuple[float, float]] = (),
    curves: Iterable[Sequence[tuple[float, float]]] = (),
    thin: Iterable[Sequence[tuple[float, float]]] = (),
    taken: Iterable[Box] = (),
) -> list[Place | None]:
    """A place for each name, the first ones first; None where there is no room for one that need not be there.
    ``size``: width and height; ``thin``: curves that matter less; ``taken``: where other text is."""
    marks = list(marks)
    boxes = [*((x - _MARK, y - _MARK, x + _MARK, y + _MARK) for x, y in marks)]
    boxes += [(x - RING, y - RING, x + RING, y + RING) for x, y in rings]
    drawn = [(_samples(curves), _ON_CURVE), (_samples(thin), _ON_LINE)]
    words, found = list(taken), list[Place | None]()
    # A text that is moved is drawn at a height of its own, which must not widen the axis.
    heights = [y for _, y in marks] or [0.0, size[1]]
    for name in names:
        candidates = [Place(side, 0, box_of(name, side)) for side in SIDES]
        if name.must:
            candidates += [
                Place(side, shift, box_of(name, side, shift))
                for shift in _SHIFTS
                if min(heights) <= name.y + shift <= max(heights)
                for side in ("right", "left")
            ]
        covered = [(np.array(each).reshape(-1, 4), cost) for each, cost in ((words, _ON_NAME), (boxes, _ON_MARK))]
        costs = [_cost(each, number, size, drawn, covered) for number, each in enumerate(candidates)]
        best = int(np.argmin(costs))
        fits = name.must or costs[best] < _ON_LINE
        found.append(candidates[best] if fits else None)
        if fits:
            words.append(candidates[best].box)
    return found


def box_of(name: Name, side: str, shift: int = 0) -> Box:
    """Left, top, right, bottom of a name's text."""
    how, width = SIDES[side], _LETTER * len(name.text)
    left = name.x + how.dx - {"left": 0.0, "center": 0.5, "right": 1.0}[how.align] * width
    top = name.y + how.dy + shift - {"top": 0.0, "middle": 0.5, "bottom": 1.0}[how.baseline] * _LINE
    return left, top, left + width, top + _LINE


def _samples(curves: Iterable[Sequence[tuple[float, float]]]) -> np.ndarray:
    """Points along curves, (n, 2)."""
    along = [np.linspace(a, b, _SAMPLES) for curve in curves for a, b in pairwise(curve)]
    return np.concatenate(along) if along else np.empty((0, 2))


def _cost(
    place: Place,
    number: int,
    size: tuple[float, float],
    drawn: list[tuple[np.ndarray, int]],
    covered: list[tuple[np.ndarray, int]],
) -> float:
    """``drawn``: points of curves, (n, 2), and ``covered``: boxes, (n, 4), each with what it costs to be on them."""
    left, top, right, bottom = place.box
    outside = left < 0 or top < 0 or right > size[0] or bottom > size[1]
    return (
        number / len(SIDES)
        + abs(place.shift)
        + _OUTSIDE * outside
        + sum(cost * int(overlap(place.box, boxes).sum()) for boxes, cost in covered)
        + sum(cost * bool(((each > [left, top]) & (each < [right, bottom])).all(axis=1).any()) for each, cost in drawn)
    )


def overlap(one: Box, others: np.ndarray) -> np.ndarray:
    """Which of the boxes, (n, 4), a box shares room with."""
    left, top, right, bottom = others.T
    return (one[0] < right) & (left < one[2]) & (one[1] < bottom) & (top < one[3])
