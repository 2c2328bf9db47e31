"""The built-in workloads given as bare functions: what is derived of them is what their files declare."""

from dataclasses import replace

import pytest

import workloads
from measure.engine.deriving import facts_of
from measure.engine.host_launcher import HostLauncher
from tests import bare
from workloads.case import Case
from workloads.own import leaves_from_wire

# Where the work that is counted is more than twice, or less than half of what the file says.
OTHER_WORK = {
    "batch_jacobian": "TensorFlow vectorises a Jacobian in a function that it always traces: its work is not known",
    "image_sqrt_uint8": "casts and scaling to bytes are counted by the file, and move data here",
    "gradient_through_map": "the file counts the gradient through the mapped function, which its `use` computes",
    "random": "the file counts the arithmetic that draws a random number",
    "top_k": "the file counts comparisons of a selection",
    "variable_shape": "the file counts comparisons of a selection",
}
# The file pads its results, so that its rewrites have one shape; the function itself gives as many as it keeps.
PADDED = "variable_shape"
# Its rows differ in length.
RAGGED = "ragged_in"


@pytest.mark.parametrize("slug", [workload.slug for workload in workloads.all()])
def test_shapes_dtypes_and_work_are_those_that_the_file_declares(host: HostLauncher, slug: str):
    workload = workloads.get(slug)
    case = Case(workload, {**workload.default_size(), "batch": 4}, workload.dtypes[0])
    facts = facts_of(host, bare.given(case), {}, 0)
    assert facts.size == {"batch": 4}
    element, declared_element = leaves_from_wire(facts.element), case.call(workload.element_input)
    if slug == RAGGED:
        # Four rows are not as long as rows are on average.
        assert element.length == pytest.approx(declared_element.length, rel=0.5)
        element = replace(element, length=declared_element.length)
    assert element == declared_element
    result = leaves_from_wire(facts.result)
    declared_result = case.call(workload.element_output)
    if slug == PADDED:
        assert (result.shape, result.dtype) == ((None,), declared_result.dtype)
    else:
        assert result == declared_result
    declared = case.cost
    assert (0.5 * declared.flops <= facts.flops <= 2 * declared.flops) == (slug not in OTHER_WORK)
    assert declared.ops / 4 <= facts.ops <= 4 * declared.ops
    assert ("PartitionedCall" in " ".join(facts.notes)) == (slug == "batch_jacobian"), facts.notes
