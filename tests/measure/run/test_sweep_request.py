"""The requests of sweeps: ranges, axes, and the strategies at a point."""

import pytest
from msgspec.structs import replace

from measure.run.encoding import decode, encode
from measure.run.request import RequestError
from measure.run.sweep_request import of_run, parse_range
from tests import synthetic
from tests.sweeps import asked, batch


def test_a_range_is_a_grid_whose_points_are_whole_and_differ():
    assert parse_range("1:100000") == [1, 4, 18, 75, 316, 1334, 5623, 23714, 100000]
    assert parse_range("1:1000:4") == parse_range("1:1000", points=4) == [1, 10, 100, 1000]
    assert parse_range("0:10:3", scale="linear") == [0, 5, 10]
    assert parse_range("1:4:9") == [1, 2, 3, 4] and parse_range("8,1, 2,2") == [1, 2, 8]


def test_what_cannot_be_swept_is_refused_with_one_sentence():
    for axes, says in (
        ([], "nothing is swept"),
        ("batch", "an axis is not valid: Expected `array`"),
        ([{"name": "batch", "range": "100:1"}], "batch=100:1 is reversed"),
        ([{"name": "batch", "range": "1:100", "points": 5000}], "batch=1:100 is not valid: an axis has"),
        ([{"name": "batch", "values": list(range(1, 99))}], "is not valid: an axis has from 2 to 64 points"),
        ([{"name": "batch", "range": "1:1000000000"}], "batch=1000000000 is not valid: a whole number from 0 to"),
        ([{"name": "batch", "range": "0:10"}], "batch=0 has no place on a log scale"),
        ([{"name": "batch", "range": "1:9", "colour": 1}], "unknown field `colour`"),
        ([{"kind": "option", "name": "chunk", "range": "1:9"}], "no chosen strategy has an option 'chunk'"),
    ):
        with pytest.raises(RequestError) as caught:
            asked("loop.eager", "batched.graph", axes=axes)
        assert says in str(caught.value) and "\n" not in str(caught.value)


def test_too_many_cells_a_fixed_size_that_is_swept_and_an_option_given_twice_or_in_a_map_are_refused():
    wide = [{"name": name, "range": "1:100", "points": 30} for name in ("batch", "side")]
    option = {"kind": "option", "name": "chunk", "values": [1, 8]}
    for slug, axes, more, says in (
        ("loop.eager", wide, {"workload": "outer_product"}, "points are too many: a sweep has at most 400"),
        ("loop.eager", batch(1, 2), {"size": {"batch": 3}}, "batch is both fixed and swept"),
        ("chunked.graph?chunk=4", [option], {}, "gives chunk itself"),
        # At another value than the first, only those that have the option would be measured, and one of them win.
        ("chunked.graph", [option, *batch(1, 8)], {}, "chunk, batch cannot be swept together"),
    ):
        with pytest.raises(RequestError, match=says):
            asked(slug, axes=axes, **more)
    chunks = [f"chunked.graph?chunk={chunk}" for chunk in range(1, 108)]
    with pytest.raises(RequestError, match="6,420 strategies × points are too many: such a sweep has at most 6,400"):
        asked(*chunks, axes=batch(*range(1, 61)))
    assert len(asked(*chunks[1:], axes=batch(*range(1, 61))).points()) == 60


def test_a_swept_option_changes_the_strategies_that_have_it_and_the_others_are_measured_once():
    request = asked("chunked.graph", "batched.graph", axes=[{"kind": "option", "name": "chunk", "values": [1, 8]}])
    assert request.comparison({"chunk": 1}).strategies == ["chunked.graph?chunk=1", "batched.graph"]
    assert request.comparison({"chunk": 8}).strategies == ["chunked.graph?chunk=8"]


def test_a_stored_sweep_tells_what_it_asked():
    request = asked("loop.eager", axes=[{"name": "batch", "range": "1:100"}], seed=3, dtype="float64")
    run = replace(synthetic.sweep(), request=request.base.record(), axes=list(request.axes))
    assert of_run(decode(encode(run))) == request
    with pytest.raises(RequestError, match="is a comparison: only a sweep can be continued"):
        of_run(synthetic.run())
