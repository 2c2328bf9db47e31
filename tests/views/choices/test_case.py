"""The picture of a case."""

import html

from views.choices import case
from workloads.spec import Leaf


def test_picture_tells_shapes_and_bytes():
    inputs, outputs = [Leaf((16, 16), "float32")], [Leaf((16, 16, 16, 16), "float32")]
    drawn = case.picture_html(100, inputs, outputs)
    assert "100 × 16 × 16 × 16 × 16" in drawn and "out 25.0 MiB" in drawn
    assert html.escape(case.picture_text(100, inputs, outputs)) in drawn
    assert "1,000 × ~2.5 × 3" in case.picture_html(1000, [Leaf((None, 3), "float32", length=2.5)], inputs)
    case.picture_html(1, [Leaf((), "float32")], [Leaf((), "float32"), Leaf((3,), "float64")])  # scalars, several leaves
