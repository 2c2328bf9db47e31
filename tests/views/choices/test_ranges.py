"""The ranges to start from: of every workload all can be measured, within the default budget and in modest memory."""

import pytest

import workloads
from measure.run.fit import forecast_sweep
from measure.run.sweep_request import DEFAULT_BUDGET_S, DEFAULT_POINTS, MOST_CELLS, SweepRequest, parse_sweep
from views.choices import ranges


def asked(slug: str, *names: str) -> SweepRequest:
    """The sweep over these names that the page asks for where nobody changes anything; by forecast nothing of it is
    left out."""
    workload = workloads.get(slug)
    bounds = ranges.sweepable(workload)
    axes = [
        {"kind": bounds[name].kind, "name": name, "range": f"{wanted.first}:{wanted.last}", "points": wanted.points}
        for name, wanted in ranges.start(workload, names).items()
    ]
    request = parse_sweep({"workload": slug, "strategies": ranges.words(workload, names), "axes": axes})
    needs = forecast_sweep(request, ranges.MODEST_BYTES)
    assert request.base.budget_s == DEFAULT_BUDGET_S and needs.peak_bytes <= ranges.MODEST_BYTES
    assert not needs.skipped and not needs.too_long and needs.seconds <= DEFAULT_BUDGET_S, (slug, names)
    return request


def test_a_line_and_a_map_of_every_workload_leave_nothing_out():
    for workload in workloads.all():
        assert len(asked(workload.slug, "batch").points()) >= 3
        sizes = [size.name for size in workload.sizes]
        if len(sizes) > 1:
            assert 4 <= len(asked(workload.slug, *sizes[:2]).points()) <= min(MOST_CELLS, DEFAULT_POINTS[2] ** 2)


def test_a_range_is_as_wide_as_fits_and_no_narrower(monkeypatch: pytest.MonkeyPatch):
    square = workloads.get("square")
    assert ranges.start(square, ["batch"])["batch"] == ranges.Range(1, 10_000, 9), "ten times the default"
    loops = workloads.get("pixel_loop")
    assert ranges.start(loops, ["batch"])["batch"].last < loops.default_size()["batch"], "a default alone takes longer"
    # Without room for anything it is the narrowest, and the page says what is left out.
    monkeypatch.setattr(ranges, "MODEST_BYTES", 1)
    assert ranges.start(workloads.get("counter"), ["width"])["width"].last <= 2
