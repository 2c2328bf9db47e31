"""Choices as data: what an address and a run make of them, and that an address brings back all of them."""

from typing import Any

import pytest
from msgspec.structs import replace

import workloads
from measure.run.request import Request, parse
from measure.run.sweep_request import SweepRequest, parse_sweep
from tests import synthetic
from views.choices import address, compare, sweep
from views.choices.address import Form

COMPARED = {"workload": "outer_product", "size": {"batch": 12, "side": 5}, "dtype": "float64", "device": "GPU:3",
            "strategies": ["map_fn.graph?parallel_iterations=3", "batched.xla"], "budget_s": 45.5,
            "memory_limit_mib": 512, "threads": 2, "seed": 9, "allocator": "default"}  # fmt: skip
_MAP = {"workload": "outer_product", "strategies": ["loop.eager", "batched.graph"], "budget_s": 333.0, "seed": 3,
        "axes": [{"name": "side", "values": [2, 3, 9]}, {"name": "batch", "range": "1:9", "points": 3}]}  # fmt: skip
_LINE = {"workload": "square", "strategies": ["default"], "axes": [{"name": "batch", "range": "1:900:4"}]}
_OPTION = {"workload": "outer_reduce", "strategies": ["chunked.graph"], "dtype": "float64",
           "axes": [{"kind": "option", "name": "chunk", "range": "1:64", "points": 3, "scale": "linear"}]}  # fmt: skip
SWEPT = [parse_sweep(raw) for raw in (_MAP, _LINE, _OPTION)]


def compare_form(raw: dict[str, Any]) -> Form:
    return compare.of_run(replace(synthetic.run(), request=parse(raw).record()))


def sweep_form(request: SweepRequest) -> Form:
    run = replace(synthetic.sweep(), request=request.base.record(), axes=list(request.axes))
    return sweep.of_run(run)


def asked(form: Form) -> Request:
    """The comparison that the page would ask for."""
    workload = workloads.get(form["workload"])
    return parse(
        {
            "workload": form["workload"],
            "size": {each.name: form[f"size_{each.name}"] for each in workload.sizes},
            "workload_options": {each.name: form[f"option_{each.name}"] for each in workload.options},
            "memory_limit_mib": form["memory_limit"],
            "budget_s": form["budget"],
            **{name: form[name] for name in ("dtype", "device", "strategies", "threads", "seed", "allocator")},
        }
    )


def brings_back(form: Form, own: Form, fields: address.Fields) -> None:
    params = address.write(form, own, fields)
    assert all(isinstance(text, str) for texts in params.values() for text in texts)
    assert address.read(params, own, fields) == (form, ())


def test_a_link_brings_back_a_comparisons_form_with_and_without_a_run() -> None:
    own = compare_form(COMPARED)
    option = {"workload": "segments", "workload_options": {"ids": "unique"}, "strategies": ["default"]}
    for raw in (COMPARED, option, *({"workload": workload.slug, "strategies": "all"} for workload in workloads.all())):
        form, first = compare_form(raw), parse(raw)
        brings_back(form, {}, address.fields)
        brings_back(form, own, address.fields)
        again = asked(form)
        assert set(again.strategies) == set(first.strategies)
        assert again.record() == replace(first.record(), strategies=list(again.strategies))
    brings_back({**own, "strategies": []}, own, address.fields)
    assert address.write(own, own, address.fields) == {}, "a run's own choices are not in its address"
    assert address.write({**own, "seed": 10}, own, address.fields) == {"seed": ["10"]}, "only what is changed is"


def test_a_link_brings_back_the_form_of_a_sweep_or_a_map_with_and_without_a_run() -> None:
    own, *others = map(sweep_form, SWEPT)
    for form in (own, *others):
        full, _ = address.read(address.write(form, {}, sweep.fields), {}, sweep.fields)
        assert form.items() <= full.items(), "beside them there are defaults of fields without a use"
        brings_back(full, {}, sweep.fields)
        brings_back(full, own, sweep.fields)
    assert address.write(own, own, sweep.fields) == {}


def test_a_value_that_no_field_can_show_is_said_with_what_is_used_instead():
    params = {"size_batch": ["-4"], "seed": ["x"], "dtype": ["float99"], "sweep": ["depth"], "scale": ["cubic"]}
    form, notices = address.read(params, {}, sweep.fields)
    seed, scale = (next(notice for notice in notices if word in notice) for word in ("Seed=x", "Scale=cubic"))
    assert len(notices) == 4 and seed.endswith("0 is used instead.") and scale.endswith("log is used instead.")
    assert form["size_batch"] == -4, "this one can be shown, and is not valid"
    with pytest.raises(ValueError, match="-4 is not valid"):
        sweep.fields(form)["size_batch"].check(-4)


def test_parameters_that_a_page_does_not_have_are_named():
    params = {"workload": ["square"], "size_height": ["3"], "bacth": ["7"], "run": ["1"], "tab": ["Code"]}
    form, (notice,) = address.read(params, {}, address.fields)
    assert "size_height, bacth" in notice and "tab" not in notice and form["size_batch"] == 1000
