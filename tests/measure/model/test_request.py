"""What may be asked: every wrong value is refused with one sentence that names it and says what is valid."""

import contextlib
import math
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

import strategies
import workloads
from measure.model import fit, forecast
from measure.model.request import MOST_SEED, Request, RequestError, case_of, parse

GIB = 2**30
OUTER = {"workload": "outer_product"}


def refused(raw: dict[str, Any]) -> str:
    with pytest.raises(RequestError) as caught:
        parse(raw)
    sentence = str(caught.value)
    assert sentence and "\n" not in sentence
    return sentence


# --- what is filled in -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slug", workloads.names())
def test_only_the_workload_has_to_be_named(slug: str):
    asked, workload = parse({"workload": slug}), workloads.get(slug)
    assert asked.size == workload.default_size() and asked.dtype == workload.dtypes[0]
    assert (asked.device, asked.memory_limit_mib, asked.threads, asked.seed) == ("CPU:0", None, None, 0)
    assert asked.strategies and set(asked.strategies) <= {each.slug for each in strategies.all_strategies(workload)}
    assert "loop.xla" not in asked.strategies, "the default leaves out what compiles for long"


def test_a_request_survives_its_way_through_a_run_file():
    asked = parse(
        {
            "workload": "image_sqrt", "size": {"batch": 3}, "dtype": "float64", "strategies": ["loop"], "budget_s": 5,
            "memory_limit_mib": 512, "threads": 1, "seed": 7,
        }
    )  # fmt: skip
    record = asked.record()
    assert parse({name: getattr(record, name) for name in record.__struct_fields__}) == asked


def test_numbers_may_come_as_text_from_a_link_or_a_command_line():
    asked = parse({**OUTER, "size": {"batch": " 12 ", "side": 8.0}, "budget_s": "2.5", "seed": "3", "threads": "2"})
    assert dict(asked.size) == {"batch": 12, "side": 8}
    assert (asked.budget_s, asked.seed, asked.threads) == (2.5, 3, 2)


@pytest.mark.parametrize(
    ("written", "meant"),
    [("cpu", "CPU:0"), ("CPU:0", "CPU:0"), ("/device:GPU:1", "GPU:1"), ("gpu", "GPU:0"), (" gpu:12 ", "GPU:12")],
)
def test_devices_have_one_name_however_they_are_written(written: str, meant: str):
    assert parse({**OUTER, "device": written}).device == meant


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("map_fn.graph", ["map_fn.graph"]),
        ("loop, map_fn.graph , loop.eager", ["loop.eager", "loop.graph", "loop.xla", "map_fn.graph"]),
        (["xla", "batched.xla"], ["loop.xla", "map_fn.xla", "vectorized_map.xla", "batched.xla"]),
        ("map_fn.graph?parallel_iterations=10,map_fn.graph", ["map_fn.graph"]),
        ("map_fn.graph?parallel_iterations=2", ["map_fn.graph?parallel_iterations=2"]),
    ],
)
def test_strategies_are_named_by_slugs_mappers_and_modes_each_once(words: Any, meant: list[str]):
    chosen = parse({**OUTER, "strategies": words}).strategies
    assert [
        slug for slug in chosen if slug.partition(".")[0] in ("loop", "map_fn", "vectorized_map", "batched")
    ] == meant


def test_all_means_every_mapper_in_every_mode():
    slugs = parse({**OUTER, "strategies": "all"}).strategies
    assert list(slugs) == [each.slug for each in strategies.all_strategies(workloads.get("outer_product"))]


def test_the_default_names_the_quickest_where_all_take_long():
    (slug,) = parse({**OUTER, "size": {"batch": 1_000_000, "side": 32}}).strategies
    assert slug.startswith("batched.")


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "names"),
    [
        ({}, ["no workload is named", "image_sqrt", "outer_product"]),
        ({"workload": "outer"}, ["workload 'outer' is not known", "outer_product"]),
        ({"workload": ["image_sqrt"]}, ["is not known", "image_sqrt"]),
        ({"workload": None}, ["is not known"]),
        (OUTER | {"sizes": {}}, ["no field 'sizes'", "size", "strategies"]),
        (OUTER | {"size": {"width": 3}}, ["outer_product has no size 'width'", "batch, side"]),
        (OUTER | {"size": {"batch": -1}}, ["batch=-1 is not valid", "from 0 to 1000000"]),
        (OUTER | {"size": {"side": 0}}, ["side=0 is not valid", "from 1 to"]),
        (OUTER | {"size": {"side": 129}}, ["side=129 is not valid", "from 1 to 128"]),
        (OUTER | {"size": {"batch": 2.5}}, ["batch=2.5 is not valid", "whole number"]),
        (OUTER | {"size": {"batch": "many"}}, ["batch=many is not valid", "whole number"]),
        (OUTER | {"size": {"batch": "1e3"}}, ["batch=1e3 is not valid", "whole number"]),
        (OUTER | {"size": {"batch": ""}}, ["batch= is not valid"]),
        (OUTER | {"size": {"batch": None}}, ["batch=None is not valid"]),
        (OUTER | {"size": {"batch": True}}, ["batch=True is not valid"]),
        (OUTER | {"size": {"batch": math.nan}}, ["batch=nan is not valid"]),
        (OUTER | {"size": {"batch": math.inf}}, ["batch=inf is not valid"]),
        (OUTER | {"size": {"batch": 10**30}}, [f"batch={10**30} is not valid"]),
        (OUTER | {"size": {"batch": "9" * 40}}, ["is not valid", "from 0 to 1000000"]),
        (OUTER | {"size": {"batch": 10**6, "side": 128}}, ["is too large", "batch=1000000, side=128", "TiB"]),
        (OUTER | {"size": [1]}, ["size=[1] is not valid"]),
        (OUTER | {"size": "batch=3"}, ["size='batch=3' is not valid"]),
        (OUTER | {"workload_options": {"model": "mlp"}}, ["outer_product has no option 'model'", "it has none"]),
        (OUTER | {"workload_options": 3}, ["workload_options=3 is not valid"]),
        (OUTER | {"dtype": "int7"}, ["dtype 'int7' is not valid for outer_product", "float32"]),
        (OUTER | {"device": "TPU:0"}, ["device 'TPU:0' is not valid", "CPU:0", "GPU:0"]),
        (OUTER | {"device": "CPU:1"}, ["device 'CPU:1' is not valid"]),
        (OUTER | {"device": "GPU:-1"}, ["device 'GPU:-1' is not valid"]),
        (OUTER | {"strategies": []}, ["no strategy is chosen", "'default'", "'all'"]),
        (OUTER | {"strategies": " , "}, ["no strategy is chosen"]),
        (OUTER | {"strategies": ""}, ["no strategy is chosen"]),
        (OUTER | {"strategies": 5}, ["strategies=5 is not valid"]),
        (OUTER | {"strategies": "scan"}, ["'scan'", "mapper.mode"]),
        (OUTER | {"strategies": "scan.graph"}, ["mapper 'scan' is not known", "map_fn"]),
        (OUTER | {"strategies": "map_fn.fast"}, ["map_fn has no mode 'fast'", "eager, graph, xla"]),
        (OUTER | {"strategies": "map_fn.graph?chunk=3"}, ["map_fn has no option 'chunk'", "parallel_iterations"]),
        (OUTER | {"strategies": "map_fn.graph?parallel_iterations=0"}, ["parallel_iterations=0 is not valid"]),
        (OUTER | {"strategies": "map_fn.graph?"}, ["malformed"]),
        (OUTER | {"strategies": [None]}, ["'None'"]),
        (OUTER | {"budget_s": math.nan}, ["budget nan is not valid", "from 1 to"]),
        (OUTER | {"budget_s": -5}, ["budget -5 is not valid"]),
        (OUTER | {"budget_s": 0}, ["budget 0 is not valid"]),
        (OUTER | {"budget_s": math.inf}, ["budget inf is not valid"]),
        (OUTER | {"budget_s": "soon"}, ["budget soon is not valid"]),
        (OUTER | {"budget_s": [3]}, ["is not valid"]),
        (OUTER | {"memory_limit_mib": 0}, ["memory limit=0 is not valid"]),
        (OUTER | {"memory_limit_mib": "lots"}, ["memory limit=lots is not valid"]),
        (OUTER | {"size": {"batch": 1000, "side": 64}, "memory_limit_mib": 15}, ["15 MiB is below", "15.6 MiB"]),
        (OUTER | {"threads": 0}, ["threads=0 is not valid"]),
        (OUTER | {"threads": 10**6}, ["threads=1000000 is not valid", "1024"]),
        (OUTER | {"seed": -1}, ["seed=-1 is not valid", str(MOST_SEED)]),
        (OUTER | {"seed": 0.5}, ["seed=0.5 is not valid"]),
    ],
)  # fmt: skip
def test_a_wrong_request_is_refused_with_what_came_in_and_what_is_valid(raw: dict[str, Any], names: list[str]):
    sentence = refused(raw)
    assert all(name in sentence for name in names), sentence


_JUNK = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=8) | some.binary(max_size=4),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)
_FIELDS = list(parse(OUTER).record().__struct_fields__)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(some.dictionaries(some.sampled_from(_FIELDS), _JUNK, max_size=4))
def test_whatever_comes_in_is_a_request_or_one_sentence(raw: dict[str, Any]):
    with contextlib.suppress(RequestError):
        assert isinstance(parse({**raw, **OUTER}), Request)


# --- what fits -------------------------------------------------------------------------------------------------------


def test_what_fits_is_not_spoken_of():
    assert fit.check(parse(OUTER), 8 * GIB) is None


def test_what_cannot_fit_is_refused_with_the_largest_batch_that_does():
    asked = parse({**OUTER, "size": {"batch": 10_000, "side": 32}, "strategies": "batched"})
    sentence = fit.check(asked, 8 * GIB)
    assert sentence is not None and sentence.startswith("This cannot fit: it needs about ")
    nearest = int(sentence.rpartition("batch=")[2].split()[0])
    assert 1 < nearest < 10_000
    for batch, fits in [(nearest, True), (nearest + 1, False)]:
        again = parse({**OUTER, "size": {"batch": batch, "side": 32}, "strategies": "batched"})
        assert (fit.check(again, 8 * GIB) is None) == fits


def test_where_not_even_one_element_fits_it_is_said():
    asked = parse({**OUTER, "size": {"batch": 10, "side": 128}, "strategies": "batched"})
    sentence = fit.check(asked, GIB // 4)
    assert sentence is not None and "no batch of these sizes fits" in sentence


def test_a_memory_limit_below_inputs_and_output_is_refused_before_anything_starts():
    # 16 matrices of 32 × 32 float32 take 64 KiB, their outer products 64 MiB.
    raw = {**OUTER, "size": {"batch": 16, "side": 32}, "strategies": "batched"}
    sentence = fit.check(parse({**raw, "memory_limit_mib": 64}), 64 * GIB)
    assert sentence is not None and "the memory limit is 64 MiB" in sentence and "batch=15 is the largest" in sentence
    assert fit.check(parse({**raw, "memory_limit_mib": 65}), 64 * GIB) is None


class TestMemoryLimit:
    """Inputs and outputs are 46.9 MiB each; map_fn.graph needs the outputs twice."""

    ASKED: ClassVar = {
        "workload": "image_sqrt",
        "size": {"batch": 1000},
        "strategies": ["batched.graph", "map_fn.graph"],
    }

    def beyond(self, limit_mib: int | None, **more: object) -> tuple[str | None, str | None]:
        request = parse({**self.ASKED, "memory_limit_mib": limit_mib, **more})
        return fit.beyond_limit(request, forecast.forecast_run(case_of(request), request.strategies).per_strategy)

    def test_without_a_limit_or_far_below_it_nothing_is_said(self):
        assert self.beyond(None) == self.beyond(10_000) == (None, None)

    def test_strategies_that_by_forecast_need_more_are_named(self):
        refusal, doubt = self.beyond(110)
        assert refusal is None and doubt == "May not fit into the memory limit of 110 MiB: map_fn.graph."

    def test_within_the_forecasts_factor_nothing_is_refused(self):
        refusal, doubt = self.beyond(80)
        assert refusal is None and doubt is not None and "batched.graph, map_fn.graph" in doubt

    def test_where_none_can_fit_it_is_refused_with_the_least_that_is_needed(self):
        refusal, doubt = self.beyond(60)
        assert doubt is None and refusal is not None
        assert refusal == (
            "Nothing can fit into the memory limit of 60 MiB: batched.graph needs least, about 93.8 MiB."
        )

    def test_of_many_only_some_are_named(self):
        assert "more." in str(self.beyond(80, strategies="all")[1])
