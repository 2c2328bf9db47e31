"""The ranges to start from: of every workload all can be measured, within the default budget and in modest memory."""

import msgspec
import pytest

import workloads
from measure.run.fit import forecast_sweep
from measure.run.sweep_request import DEFAULT_BUDGET_S, DEFAULT_POINTS, MOST_CELLS, SweepRequest, parse_sweep
from views.choices import axes


def asked(slug: str, *names: str) -> SweepRequest:
    """The sweep over these names that the page asks for where nobody changes anything; by forecast nothing of it is
    left out."""
    workload = workloads.get(slug)
    starts = [msgspec.structs.asdict(axis) for axis in axes.start(workload, names)]
    request = parse_sweep({"workload": slug, "strategies": axes.words(workload, names), "axes": starts})
    needs = forecast_sweep(request, axes.MODEST_BYTES)
    assert request.base.budget_s == DEFAULT_BUDGET_S and needs.peak_bytes <= axes.MODEST_BYTES
    assert not needs.skipped and not needs.too_long and needs.seconds <= DEFAULT_BUDGET_S, (slug, names)
    return request


def test_a_line_and_a_map_of_every_workload_leave_nothing_out():
    for workload in workloads.all():
        assert len(asked(workload.slug, "batch").points()) >= 3
        sizes = [size.name for size in workload.sizes]
        if len(sizes) > 1:
            assert 4 <= len(asked(workload.slug, *sizes[:2]).points()) <= min(MOST_CELLS, DEFAULT_POINTS[2] ** 2)


def test_a_range_is_as_wide_as_fits_and_no_narrower(monkeypatch: pytest.MonkeyPatch):
    (line,) = axes.start(workloads.get("square"), ["batch"])
    assert tuple(axes.form_of(line, 1).values()) == ("1", "10000", 9, "log"), "ten times the default"
    loops = workloads.get("pixel_loop")
    (line,) = axes.start(loops, ["batch"])
    assert line.values[-1] < loops.default_size()["batch"], "a default alone takes longer"
    # Without room for anything it is the narrowest, and the page says what is left out.
    monkeypatch.setattr(axes, "MODEST_BYTES", 1)
    assert axes.start(workloads.get("counter"), ["width"])[0].values[-1] <= 2
