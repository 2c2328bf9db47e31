"""Choices as data: what an address and a run make of them, and that an address brings back all of them."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import workloads
from measure.model.request import Request, parse
from measure.sweep.request import DEFAULT_POINTS, SweepRequest, parse_sweep
from tests import synthetic
from tests.forms import requests, sweeps
from views.choices import address, compare, summary, sweep
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
            **{name: form[name] for name in ("dtype", "device", "strategies", "threads", "seed")},
        }
    )


def brings_back(form: Form, own: Form, fields: address.Fields) -> None:
    params = address.write(form, own, fields)
    assert all(isinstance(text, str) for texts in params.values() for text in texts)
    assert address.read(params, own, fields) == (form, ())


@settings(deadline=None, max_examples=30)
@given(requests(), requests())
def test_a_link_brings_back_a_comparisons_form_with_and_without_a_run(raw, other):
    form, own = compare_form(raw), compare_form(other)
    brings_back(form, {}, address.fields)
    brings_back(form, own, address.fields)
    assert address.write(own, own, address.fields) == {}, "a run's own choices are not in its address"
    assert asked(form).record() == replace(parse(raw).record(), strategies=list(asked(form).strategies)) and set(
        asked(form).strategies
    ) == set(parse(raw).strategies)


@settings(deadline=None, max_examples=30)
@given(sweeps(), sweeps())
def test_a_link_brings_back_the_form_of_a_sweep_or_a_map_with_and_without_a_run(request_, other):
    form, own = sweep_form(request_), sweep_form(other)
    full, _ = address.read(address.write(form, {}, sweep.fields), {}, sweep.fields)
    assert form.items() <= full.items(), (
        "beyond a run's choices there are the defaults of fields that it has no use for"
    )
    brings_back(full, {}, sweep.fields)
    brings_back(full, own, sweep.fields)
    assert address.write(own, own, sweep.fields) == {}


@settings(deadline=None, max_examples=30)
@given(requests(), st.data())
def test_what_is_changed_beside_a_run_is_all_that_the_address_has(raw, data):
    own = compare_form(raw)
    numbers = [*sorted(key for key in own if key.startswith("size_")), "seed"]
    key = data.draw(st.sampled_from(numbers))
    form = {**own, key: own[key] + 1}
    assert address.write(form, own, address.fields) == {key: [str(own[key] + 1)]}


def test_an_address_without_parameters_makes_the_defaults():
    form, notices = address.read({}, {}, address.fields)
    assert notices == () and form["workload"] == workloads.names()[0] and form["size_batch"] == 100
    swept, notices = address.read({}, {}, sweep.fields)
    assert notices == () and swept["sweep"] == "batch" and swept["points"] == DEFAULT_POINTS[1]
    assert swept["sweep_2"] == "nothing" and "from_2" not in swept and len(swept["strategies"]) == 4


def test_another_workload_than_the_runs_has_its_own_defaults_and_keeps_the_rest():
    own = address.of_request(replace(synthetic.run().request, budget_s=33.0))
    form, _ = address.read({"workload": ["outer_product"]}, own, address.fields)
    assert form["size_side"] == workloads.get("outer_product").default_size()["side"]
    assert form["strategies"] == ["default"] and form["budget"] == 33.0


def test_a_value_that_no_field_can_show_is_said_with_what_is_used_instead():
    params = {"size_batch": ["-4"], "seed": ["x"], "dtype": ["float99"], "sweep": ["depth"], "scale": ["cubic"]}
    form, notices = address.read(params, {}, sweep.fields)
    seed, scale = (next(notice for notice in notices if word in notice) for word in ("Seed=x", "Scale=cubic"))
    assert len(notices) == 4 and seed.endswith("0 is used instead.") and scale.endswith("log is used instead.")
    assert form["size_batch"] == -4, "this one can be shown, and is not valid"
    assert address.fault(sweep.fields(form)["size_batch"], -4).startswith("Batch=-4 is not valid")


def test_a_runs_strategies_have_a_word_where_there_is_one():
    raw = {"workload": "square", "size": {"batch": 10}}
    assert compare_form({**raw, "strategies": "default"})["strategies"] == ["default"]
    assert compare_form({**raw, "strategies": "all"})["strategies"] == ["all"]
    assert compare_form({**raw, "strategies": ["loop.eager"]})["strategies"] == ["loop.eager"]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("size_batch", 64, "batch 64"),
        ("memory_limit", None, "no memory limit"),
        ("memory_limit", 64, "memory limit 64 MiB"),
        ("budget", 9.0, "time budget 9 s"),
        ("strategies", ["a.graph", "b.graph"], "2 strategies"),
        ("strategies", ["a.graph"], "a.graph"),
        ("from_2", "1", "start of the second size 1"),
        ("sweep_2", "nothing", "no second size"),
    ],
)
def test_choices_in_words(key: str, value: Any, said: str):
    assert summary.choice(key, value) == said


def test_a_form_in_one_line():
    assert summary.line(parse({"workload": "image_sqrt", "strategies": ["loop.eager"]})) == (
        "image_sqrt · 100×64×64×3 · float32 · CPU:0 · loop.eager"
    )
    axes = [{"name": "height", "range": "8:64"}]
    line = summary.line(
        parse_sweep({"workload": "image_sqrt", "strategies": ["loop.eager", "map_fn.xla"], "axes": axes})
    )
    assert line == "image_sqrt · height 8 to 64 · batch 100 · width 64 · channels 3 · float32 · CPU:0 · 2 strategies"
