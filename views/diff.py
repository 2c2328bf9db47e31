"""Two scripts side by side, their differences marked by sign and colour. Pure: text in, HTML out."""

import difflib
import html
from itertools import zip_longest

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


def pairs(left: str, right: str) -> list[tuple[str | None, str | None, bool]]:
    """Lines beside each other, None where one side has nothing, and whether they are the same."""
    a, b = left.splitlines(), right.splitlines()
    found: list[tuple[str | None, str | None, bool]] = []
    for kind, a0, a1, b0, b1 in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind == "equal":
            found += [(x, y, True) for x, y in zip(a[a0:a1], b[b0:b1], strict=True)]
        else:
            found += [(x, y, False) for x, y in zip_longest(a[a0:a1], b[b0:b1])]
    return found


def _cell(line: str | None, same: bool, sign: str, kind: str) -> str:
    if line is None:
        return '<div class="none"> </div>'
    return f"<div>  {html.escape(line)}</div>" if same else f'<div class="{kind}">{sign} {html.escape(line)}</div>'


def side_by_side(left: str, right: str, left_name: str, right_name: str) -> str:
    cells = [f'<div class="head">{html.escape(left_name)}</div><div class="head">{html.escape(right_name)}</div>']
    for a, b, same in pairs(left, right):
        cells.append(_cell(a, same, "−", "gone") + _cell(b, same, "+", "new"))
    return f'{_STYLE}<div class="mb-diff" role="region" tabindex="0" aria-label="Differences">{"".join(cells)}</div>'
