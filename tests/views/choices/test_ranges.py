"""The ranges to start from: of every workload all can be measured, within the default budget and in modest memory."""

import pytest

import workloads
from measure.sweep.needs import forecast_sweep
from measure.sweep.request import DEFAULT_BUDGET_S, DEFAULT_POINTS, MOST_CELLS, SweepRequest, parse_sweep
from views.choices import ranges

SLUGS = workloads.names()


def asked(slug: str, *names: str) -> SweepRequest:
    """The sweep over these names that the page asks for where nobody changes anything."""
    workload = workloads.get(slug)
    known = ranges.sweepable(workload)
    axes = [
        {"kind": known[name].kind, "name": name, "range": f"{each.first}:{each.last}", "points": each.points}
        for name, each in ranges.start(workload, names).items()
    ]
    return parse_sweep({"workload": slug, "strategies": ranges.words(workload, names), "axes": axes})


def is_whole(request: SweepRequest) -> bool:
    """By forecast nothing is left out, and there are as many seconds and cells as there may be."""
    needs = forecast_sweep(request, ranges.MODEST_BYTES)
    assert request.base.budget_s == DEFAULT_BUDGET_S and needs.peak_bytes <= ranges.MODEST_BYTES
    return not needs.skipped and not needs.left_out and needs.seconds < DEFAULT_BUDGET_S


@pytest.mark.parametrize("slug", SLUGS)
def test_a_line_leaves_nothing_out(slug: str):
    request = asked(slug, "batch")
    assert is_whole(request)
    assert len(request.points()) >= 3


@pytest.mark.parametrize("slug", SLUGS)
def test_a_map_leaves_nothing_out(slug: str):
    sizes = [size.name for size in workloads.get(slug).sizes]
    if len(sizes) > 1:
        request = asked(slug, *sizes[:2])
        assert is_whole(request)
        assert 4 <= len(request.points()) <= min(MOST_CELLS, DEFAULT_POINTS[2] ** 2)


@pytest.mark.parametrize("slug", ["outer_reduce", "pixel_loop", "random"])
def test_an_option_has_the_strategies_that_have_it_and_leaves_nothing_out(slug: str):
    workload = workloads.get(slug)
    request = asked(slug, "chunk")
    assert "chunked.graph" in request.base.strategies
    assert set(ranges.words(workload, ["batch"])) < set(request.base.strategies), "beside the usual ones"
    assert is_whole(request)


def test_what_the_usual_strategies_have_adds_no_other():
    workload = workloads.get("square")
    assert ranges.words(workload, ["parallel_iterations"]) == ranges.words(workload, ["batch"])


def test_a_range_is_as_wide_as_fits_and_no_narrower(monkeypatch: pytest.MonkeyPatch):
    square = workloads.get("square")
    assert ranges.start(square, ["batch"])["batch"] == ranges.Range(1, 10_000, 9), "ten times the default"
    loops = workloads.get("pixel_loop")
    first, *_ = ranges.start(loops, ["batch"]).values()
    assert first.last < loops.default_size()["batch"], "where a default alone takes longer than there is"
    # Without room for anything it is the narrowest, and the page says what is left out.
    monkeypatch.setattr(ranges, "MODEST_BYTES", 1)
    workload = workloads.get("counter")
    assert ranges.start(workload, ["width"])["width"].last <= 2


def test_every_size_and_option_of_numbers_can_be_swept():
    known = ranges.sweepable(workloads.get("outer_reduce"))
    assert [name for name, bounds in known.items() if bounds.kind == "size"] == ["batch", "side"]
    assert {"chunk", "parallel_iterations"} <= {name for name, bounds in known.items() if bounds.kind == "option"}
