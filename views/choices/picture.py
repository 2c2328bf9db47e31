"""A picture of what a workload takes and gives: the batch as a stack of slices, in and out, with their shapes. Pure."""

import html
import math
from collections.abc import Sequence

from views.ui import look
from workloads.spec import Leaf

_STEP = 5  # pixels from one slice to the one behind it


def _shape(batch: int, leaf: Leaf) -> str:
    return " × ".join(f"{side:,}" for side in (batch, *leaf.shape))


def _stack(leaf: Leaf, largest: int) -> str:
    """Three slices, one behind the other; their side follows the logarithm of a slice's bytes."""
    side = 14 + 22 * math.log2(leaf.bytes + 2) / math.log2(largest + 2)
    wide, high = (side, side) if len(leaf.shape) > 1 else (max(7.0, side / 3), side)
    boxes = "".join(
        f'<div style="position:absolute;left:{_STEP * back}px;top:{_STEP * (2 - back)}px;width:{wide:.0f}px;'
        f"height:{high:.0f}px;border:1.5px solid currentColor;border-radius:3px;"
        'background:light-dark(#e3edf9, #23364f);box-sizing:border-box"></div>'
        for back in (2, 1, 0)
    )
    return (
        f'<div style="position:relative;width:{wide + 2 * _STEP:.0f}px;height:{high + 2 * _STEP:.0f}px;'
        f'margin:2px 0 6px" aria-hidden="true">{boxes}</div>'
    )


def _side(title: str, batch: int, leaves: Sequence[Leaf], largest: int) -> str:
    shown = max(leaves, key=lambda leaf: leaf.bytes)
    lines = "".join(
        f'<div style="white-space:nowrap">{_shape(batch, leaf)}'
        f' <span style="opacity:.65">{html.escape(leaf.dtype)}</span></div>'
        for leaf in leaves
    )
    total = look.size(batch * sum(leaf.bytes for leaf in leaves))
    return (
        '<div style="display:flex;flex-direction:column;align-items:center;min-width:0">'
        f'<div style="height:52px;display:flex;align-items:center">{_stack(shown, largest)}</div>{lines}'
        f'<div style="opacity:.65">{title} {total}</div></div>'
    )


def words(batch: int, inputs: Sequence[Leaf], outputs: Sequence[Leaf]) -> str:
    """In: 100 × 64 × 64 × 3 float32. Out: 100 × 64 × 64 × 3 float32."""
    told = [" and ".join(f"{_shape(batch, leaf)} {leaf.dtype}" for leaf in leaves) for leaves in (inputs, outputs)]
    return f"In: {told[0]}. Out: {told[1]}."


def shapes(batch: int, inputs: Sequence[Leaf], outputs: Sequence[Leaf]) -> str:
    """HTML of the picture; the drawing takes the colour of the text around it."""
    largest = max(leaf.bytes for leaf in (*inputs, *outputs))
    arrow = (
        '<div style="display:flex;flex-direction:column;align-items:center;opacity:.85;padding-top:8px">'
        '<code style="font-size:.8rem">fn</code><div style="font-size:1.3rem;line-height:1.1">⟶</div>'
        f'<div style="opacity:.75">{batch:,} times</div></div>'
    )
    return (
        f'<div role="img" aria-label="{html.escape(words(batch, inputs, outputs))}" '
        'style="display:flex;align-items:flex-start;justify-content:space-around;gap:.4rem;font-size:.82rem;flex-wrap:wrap">'
        f"{_side('in', batch, inputs, largest)}{arrow}{_side('out', batch, outputs, largest)}</div>"
    )
