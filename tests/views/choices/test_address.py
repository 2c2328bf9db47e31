"""Choices as data: what an address and a run make of them, and that an address brings back all of them."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import workloads
from measure.model.request import Request, parse
from measure.sweep.request import SweepRequest
from tests import synthetic
from tests.forms import requests, sweeps
from views.choices import address, compare, sweep
from views.choices.address import Form


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


@settings(deadline=None, max_examples=12, derandomize=True)
@given(requests(), requests(), st.data())
def test_a_link_brings_back_a_comparisons_form_with_and_without_a_run(raw, other, data):
    form, own = compare_form(raw), compare_form(other)
    brings_back(form, {}, address.fields)
    brings_back(form, own, address.fields)
    assert address.write(own, own, address.fields) == {}, "a run's own choices are not in its address"
    again, first = asked(form), parse(raw)
    assert set(again.strategies) == set(first.strategies)
    assert again.record() == replace(first.record(), strategies=list(again.strategies))
    key = data.draw(st.sampled_from([*sorted(key for key in own if key.startswith("size_")), "seed"]))
    changed = {**own, key: own[key] + 1}
    assert address.write(changed, own, address.fields) == {key: [str(own[key] + 1)]}, "only what is changed is"


@settings(deadline=None, max_examples=12, derandomize=True)
@given(sweeps(), sweeps())
def test_a_link_brings_back_the_form_of_a_sweep_or_a_map_with_and_without_a_run(request_, other):
    form, own = sweep_form(request_), sweep_form(other)
    full, _ = address.read(address.write(form, {}, sweep.fields), {}, sweep.fields)
    assert form.items() <= full.items(), "beyond a run's choices there are defaults of fields that it has no use for"
    brings_back(full, {}, sweep.fields)
    brings_back(full, own, sweep.fields)
    assert address.write(own, own, sweep.fields) == {}


def test_a_value_that_no_field_can_show_is_said_with_what_is_used_instead():
    params = {"size_batch": ["-4"], "seed": ["x"], "dtype": ["float99"], "sweep": ["depth"], "scale": ["cubic"]}
    form, notices = address.read(params, {}, sweep.fields)
    seed, scale = (next(notice for notice in notices if word in notice) for word in ("Seed=x", "Scale=cubic"))
    assert len(notices) == 4 and seed.endswith("0 is used instead.") and scale.endswith("log is used instead.")
    assert form["size_batch"] == -4, "this one can be shown, and is not valid"
    assert "-4 is not valid" in address.fault(sweep.fields(form)["size_batch"], -4)
