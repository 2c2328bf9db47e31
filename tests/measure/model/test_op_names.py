"""Names of what held memory at a peak: the kind of op is read from them as they are written."""

import pytest

from measure.model import op_names


@pytest.mark.parametrize(
    ("name", "written", "kind"),
    [
        (op_names.of_ops("map/while/TensorListStack", 1), "map/while/TensorListStack", "TensorListStack"),
        (op_names.of_ops("map/while/mul", 3), "map/while/mul (3 ops)", "mul"),
        (op_names.of_xla_buffer("output", "a/b"), "XLA output buffer (cluster a/b)", "XLA output buffer"),
    ],
)
def test_the_kind_of_op_is_read_from_a_name(name: str, written: str, kind: str):
    assert name == written and op_names.kind(name) == kind
