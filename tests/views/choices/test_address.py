"""Choices as data: what an address and a run make of them, and that an address brings back all of them."""

from typing import Any

from msgspec.structs import replace

import workloads
from measure.run.request import parse
from measure.run.sweep_request import parse_sweep
from tests import synthetic
from views.choices import address
from views.choices.address import Form, Kind

COMPARED = {"workload": "outer_product", "size": {"batch": 12, "side": 5}, "dtype": "float64", "device": "GPU:3",
            "strategies": ["map_fn.graph?parallel_iterations=3", "batched.xla"], "budget_s": 45.5,
            "memory_limit_mib": 512, "threads": 2, "seed": 9, "allocator": "default"}  # fmt: skip
LINK = {"workload": ["outer_product"], "size_batch": ["12"], "size_side": ["5"], "dtype": ["float64"],
        "strategies": ["map_fn.graph?parallel_iterations=3", "batched.xla"], "device": ["GPU:3"], "budget": ["45.5"],
        "memory_limit": ["512"], "threads": ["2"], "seed": ["9"], "allocator": ["default"]}  # fmt: skip
_MAP = {"workload": "outer_product", "strategies": ["loop.eager", "batched.graph"], "budget_s": 333.0, "seed": 3,
        "axes": [{"name": "side", "values": [2, 3, 9]}, {"name": "batch", "range": "1:9", "points": 3}]}  # fmt: skip
_LINE = {"workload": "square", "strategies": ["default"], "axes": [{"name": "batch", "range": "1:900:4"}]}
_OPTION = {"workload": "outer_reduce", "strategies": ["chunked.graph"], "dtype": "float64",
           "axes": [{"kind": "option", "name": "chunk", "range": "1:64", "points": 3, "scale": "linear"}]}  # fmt: skip
SWEPT = [parse_sweep(raw) for raw in (_MAP, _LINE, _OPTION)]


def compare_form(raw: dict[str, Any]) -> Form:
    return address.of_run(replace(synthetic.run(), request=parse(raw).record()))


def brings_back(kind: Kind, form: Form, own: Form) -> None:
    assert address.read(kind, address.write(kind, form, own), own) == (form, ())


def test_a_link_brings_back_a_comparisons_form_with_and_without_a_run() -> None:
    own = compare_form(COMPARED)
    option = {"workload": "segments", "workload_options": {"ids": "unique"}, "strategies": ["default"]}
    for raw in (COMPARED, option, *({"workload": workload.slug, "strategies": "all"} for workload in workloads.all())):
        form = compare_form(raw)
        brings_back("compare", form, {})
        brings_back("compare", form, own)
    brings_back("compare", {**own, "strategies": []}, own)
    assert address.write("compare", own, {}) == LINK and compare_form(option)["strategies"] == ["default"]
    assert address.write("compare", own, own) == {}, "a run's own choices are not in its address"
    assert address.write("compare", {**own, "seed": 10}, own) == {"seed": ["10"]}, "only what is changed is"


def test_a_link_brings_back_the_form_of_a_sweep_or_a_map_with_and_without_a_run() -> None:
    runs = (replace(synthetic.sweep(), request=one.base.record(), axes=list(one.axes)) for one in SWEPT)
    own, *others = map(address.of_run, runs)
    for form in (own, *others):
        full, _ = address.read("sweep", address.write("sweep", form, {}), {})
        assert form.items() <= full.items(), "beside them there are defaults of fields without a use"
        brings_back("sweep", full, {})
        brings_back("sweep", full, own)
    assert address.write("sweep", own, own) == {}


def test_a_value_that_no_field_can_show_is_said_with_what_is_used_instead():
    params = {"size_batch": ["-4"], "seed": ["x"], "dtype": ["float99"], "sweep": ["depth"], "scale": ["cubic"]}
    form, notices = address.read("sweep", params, {})
    seed, scale = (next(notice for notice in notices if word in notice) for word in ("seed=x", "Scale 'cubic'"))
    assert len(notices) == 4 and seed.endswith("0 is used instead.") and scale.endswith("log is used instead.")
    many = {"strategies": [f"x{number}" for number in range(5_000)], **{f"p{number}": ["1"] for number in range(5_000)}}
    form_of_many, notices = address.read("compare", many, {})
    assert form_of_many["strategies"] == ["default"] and "at most 1,000" in notices[0] and max(map(len, notices)) < 300
    assert form["size_batch"] == -4, "this one can be shown, and is not valid"


def test_parameters_that_a_page_does_not_have_are_named():
    params = {"workload": ["square"], "size_height": ["3"], "bacth": ["7"], "run": ["1"], "tab": ["Code"]}
    form, (notice,) = address.read("compare", params, {})
    assert "size_height and bacth" in notice and "tab" not in notice and form["size_batch"] == 1000
