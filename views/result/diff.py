"""Two texts side by side, their differences marked by sign and colour. Pure: text in, HTML out."""

import difflib
import html
from collections import Counter
from itertools import zip_longest

from views.result import texts

_STYLE = """<style>
.mb-diff {display: grid; grid-template-columns: 1fr 1fr; overflow-x: auto; border-radius: 6px;
  border: 1px solid light-dark(#d4dae3, #354256); font-family: ui-monospace, "Source Code Pro", monospace;
  font-size: .76rem; line-height: 1.45}
.mb-diff > * {white-space: pre-wrap; overflow-wrap: anywhere; padding: 0 .6em; min-width: 0}
.mb-diff > :nth-child(odd) {border-right: 1px solid light-dark(#d4dae3, #354256)}
.mb-diff .head {font-family: inherit; font-weight: 600; padding: .35em .6em;
  border-bottom: 1px solid light-dark(#d4dae3, #354256)}
.mb-diff .gone {background: light-dark(#ffe9e4, #4a2320)}
.mb-diff .new {background: light-dark(#def3ee, #143d36)}
.mb-diff .none {background: light-dark(#f3f5f8, #141c28)}
</style>"""


# Beyond, a difference is not computed: nobody reads it to its end.
MOST_LINES = 1_500
# Steps of the matcher, which a page waits for: about a second.
_MOST_STEPS = 10_000_000


class TooLong(ValueError):
    """A text has more lines than can be compared."""


def pairs(left: str, right: str) -> list[tuple[str | None, str | None, bool]]:
    """Return lines beside each other, None where one side has nothing, and True where they are the same.

    Raises `TooLong` with a sentence. However the lines repeat, the work is bounded: those that occur most often are not
    searched for."""
    a, b = left.splitlines(), right.splitlines()
    if max(len(a), len(b)) > MOST_LINES:
        raise TooLong(texts.TOO_LONG.format(most=MOST_LINES))
    common = _too_common(a, b)
    matcher = difflib.SequenceMatcher(lambda line: line in common, a, b, autojunk=False)
    compared: list[tuple[str | None, str | None, bool]] = []
    for kind, a0, a1, b0, b1 in matcher.get_opcodes():
        if kind == "equal":
            compared += [(x, y, True) for x, y in zip(a[a0:a1], b[b0:b1], strict=True)]
        else:
            compared += [(x, y, x == y) for x, y in zip_longest(a[a0:a1], b[b0:b1])]
    return compared


def _too_common(a: list[str], b: list[str]) -> set[str]:
    """Return the lines without which the matcher takes no more than its steps: each of its searches, at most one for
    every line, looks at all places where a line of one text occurs in the other. It still matches them beside others
    that match."""
    in_a, in_b = Counter(a), Counter(b)
    places = sorted(((in_a[line] * in_b[line], line) for line in in_a.keys() & in_b.keys()), reverse=True)
    total = sum(count for count, _ in places)
    common = set()
    for count, line in places:
        if total * min(len(a), len(b)) <= _MOST_STEPS:
            break
        common.add(line)
        total -= count
    return common


def _cell(line: str | None, same: bool, sign: str, kind: str) -> str:
    if line is None:
        return '<div class="none"> </div>'
    return f"<div>  {html.escape(line)}</div>" if same else f'<div class="{kind}">{sign} {html.escape(line)}</div>'


def side_by_side(left: str, right: str, left_name: str, right_name: str) -> str:
    """Return both texts as HTML; a sentence where they are too long."""
    try:
        compared = pairs(left, right)
    except TooLong as error:
        return f'<p role="note">{html.escape(str(error))}</p>'
    cells = [f'<div class="head">{html.escape(left_name)}</div><div class="head">{html.escape(right_name)}</div>']
    for a, b, same in compared:
        cells.append(_cell(a, same, "−", "gone") + _cell(b, same, "+", "new"))
    label = texts.DIFFERENCES
    return f'{_STYLE}<div class="mb-diff" role="region" tabindex="0" aria-label="{label}">{"".join(cells)}</div>'
