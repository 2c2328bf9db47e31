"""The requests of sweeps: ranges, axes, and the strategies at a point."""

from typing import Any

import pytest

from measure.model.request import RequestError
from measure.model.run import Run
from measure.model.run_file import decode, encode
from measure.sweep.request import of_run, parse_range, parse_sweep
from tests import synthetic
from tests.measure.sweep.common import asked, batch


@pytest.mark.parametrize(
    ("text", "more", "values"),
    [
        ("1:100000", {}, [1, 4, 18, 75, 316, 1334, 5623, 23714, 100000]),
        ("1:1000:4", {}, [1, 10, 100, 1000]),
        ("1:1000", {"points": 4}, [1, 10, 100, 1000]),
        ("0:10:3", {"scale": "linear"}, [0, 5, 10]),
        ("1:4:9", {}, [1, 2, 3, 4]),
        ("8,1, 2,2", {}, [1, 2, 8]),
    ],
)
def test_a_range_is_a_grid_whose_points_are_whole_and_differ(text: str, more: dict[str, Any], values: list[int]):
    assert parse_range(text, **more) == values


@pytest.mark.parametrize(
    ("axes", "says"),
    [
        (None, "nothing is swept"),
        ([], "nothing is swept"),
        ("batch", "a list of axes is needed"),
        ([{"name": "batch", "range": "100:1"}], "batch=100:1 is reversed: write the smaller end first, batch=1:100"),
        ([{"name": "batch", "range": ""}], "batch is empty"),
        ([{"name": "batch", "values": []}], "batch is empty"),
        ([{"name": "batch", "range": "5:5"}], "is one point"),
        ([{"name": "batch", "values": [5, 5]}], "is one point"),
        ([{"name": "batch", "range": "1:100", "points": 5000}], "5000 points is not valid: from 2 to 64 are"),
        ([{"name": "batch", "range": "1:100:1"}], "1 points is not valid"),
        ([{"name": "batch", "values": list(range(1, 99))}], "98 values of batch are too many"),
        ([{"name": "batch", "range": "1:1000000000"}], "batch=1000000000 is not valid: a whole number from 0 to"),
        ([{"name": "batch", "range": "-5:10"}], "batch=-5 is not valid"),
        ([{"name": "batch", "range": "0:10"}], "batch=0 has no place on a log scale"),
        ([{"name": "batch", "range": "one:ten"}], "whole numbers are needed"),
        ([{"name": "batch", "range": "1:2:3:4"}], "whole numbers are needed"),
        ([{"name": "batch", "values": [1, 2.5]}], "batch=2.5 is not valid"),
        ([{"name": "batch", "values": "1:5"}], "a list of whole numbers is needed"),
        ([{"name": "batch"}], "needs either values or a range"),
        ([{"name": "batch", "range": "1:9", "points": "many"}], "points=many is not valid"),
        ([{"name": "batch", "range": "1:9", "scale": "cubic"}], "scale 'cubic' is not valid: log or linear is"),
        ([{"name": "batch", "range": "1:9", "kind": "dtype"}], "axis kind 'dtype' is not valid"),
        ([{"name": "batch", "range": "1:9", "colour": 1}], "an axis has no field 'colour'"),
        ([{"name": "side", "range": "1:9"}], "square has no size 'side': its sizes are batch"),
        ([{"name": "batch", "range": "1:9"}] * 2, "batch is swept twice"),
        ([{"name": "batch", "range": "1:9"}] * 3, "3 axes are too many"),
        ([{"kind": "option", "name": "chunk", "range": "1:9"}], "no chosen strategy has an option 'chunk'"),
    ],
)
def test_what_cannot_be_swept_is_refused_with_one_sentence(axes: Any, says: str):
    with pytest.raises(RequestError) as caught:
        asked("loop.eager", "batched.graph", axes=axes)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_too_many_cells_a_fixed_size_that_is_swept_and_an_option_given_twice_are_refused():
    wide = [{"name": name, "range": "1:100", "points": 30} for name in ("batch", "side")]
    with pytest.raises(RequestError, match="points are too many: a sweep has at most 400"):
        parse_sweep({"workload": "outer_product", "axes": wide})
    with pytest.raises(RequestError, match="batch is both fixed and swept"):
        asked("loop.eager", axes=batch(1, 2), size={"batch": 3})
    with pytest.raises(RequestError, match="gives chunk itself"):
        asked("chunked.graph?chunk=4", axes=[{"kind": "option", "name": "chunk", "values": [1, 2]}])


def test_a_map_is_over_two_sizes():
    """At another value of an option than the first, only those that have it would be measured, and one of them win."""
    option = {"kind": "option", "name": "chunk", "values": [1, 8]}
    for axes in ([*batch(1, 8), option], [option, *batch(1, 8)]):
        with pytest.raises(RequestError, match="chunk is an option of strategies, which is swept alone"):
            asked("chunked.graph", "batched.graph", axes=axes)


def test_default_strategies_are_those_of_the_smallest_point():
    request = parse_sweep({"workload": "square", "axes": batch(1, 100_000)})
    assert "loop.eager" in request.base.strategies, "a Python loop is hopeless at the large end only"
    assert request.base.size == {"batch": 1} and request.points() == [{"batch": 1}, {"batch": 100_000}]


def test_a_swept_option_changes_the_strategies_that_have_it_and_the_others_are_measured_once():
    request = asked("chunked.graph", "batched.graph", axes=[{"kind": "option", "name": "chunk", "values": [1, 8]}])
    assert request.comparison({"chunk": 1}).strategies == ("chunked.graph?chunk=1", "batched.graph")
    assert request.comparison({"chunk": 8}).strategies == ("chunked.graph?chunk=8",)
    assert request.slugs({"chunk": 8})["chunked.graph"] == "chunked.graph?chunk=8"


def test_a_stored_sweep_tells_what_it_asked():
    request = asked("loop.eager", axes=[{"name": "batch", "range": "1:100"}], seed=3, dtype="float64")
    run = Run(
        id="0" * 24,
        kind="sweep",
        created="2025-01-15T09:30:00Z",
        request=request.base.record(),
        axes=list(request.axes),
    )
    assert of_run(decode(encode(run))) == request
    with pytest.raises(RequestError, match="is a comparison: only a sweep can be continued"):
        of_run(synthetic.run())
