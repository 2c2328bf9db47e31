"""What may be asked: every wrong value is refused with one sentence that names it and says what is valid."""

import contextlib
import itertools
import math

import pytest
from msgspec import UNSET
from msgspec.structs import replace

import strategies
import workloads
from measure.run import fit
from measure.run.request import Request, RequestError, again, parse
from measure.run.sweep_request import parse_sweep

GIB = 2**30
OUTER = {"workload": "outer_product"}


def test_what_is_not_named_is_filled_in_and_numbers_may_come_as_text():
    for slug in workloads.names():
        asked, workload = parse({"workload": slug}), workloads.get(slug)
        assert asked.size == workload.default_size() and asked.dtype == workload.dtypes[0]
        assert (asked.device, asked.memory_limit_mib, asked.threads, asked.seed) == ("CPU:0", None, None, 0)
        assert asked.strategies and set(asked.strategies) <= {each.slug for each in strategies.all_strategies(workload)}
        assert "loop.xla" not in asked.strategies, "the default leaves out what compiles for long"
    asked = parse({**OUTER, "size": {"batch": " 12 ", "side": 8.0}, "budget_s": "2.5", "seed": "3", "threads": "2"})
    assert dict(asked.size) == {"batch": 12, "side": 8}
    assert (asked.budget_s, asked.seed, asked.threads) == (2.5, 3, 2)
    assert parse(OUTER).allocator == "pool" and parse({**OUTER, "allocator": "default"}).allocator == "default"
    for written, meant in (("cpu", "CPU:0"), ("/device:GPU:1", "GPU:1"), (" gpu:12 ", "GPU:12")):
        assert parse({**OUTER, "device": written}).device == meant


def test_strategies_are_named_by_slugs_mappers_and_modes_each_once():
    for words, meant in (
        ("loop, map_fn.graph , loop.eager", ["loop.eager", "loop.graph", "loop.xla", "map_fn.graph"]),
        (["xla", "batched.xla"], ["loop.xla", "map_fn.xla", "vectorized_map.xla", "batched.xla"]),
        ("map_fn.graph?parallel_iterations=10,map_fn.graph", ["map_fn.graph"]),
        ("map_fn.graph?parallel_iterations=2", ["map_fn.graph?parallel_iterations=2"]),
    ):
        chosen = parse({**OUTER, "strategies": words}).strategies
        common = ("loop", "map_fn", "vectorized_map", "batched")
        assert [slug for slug in chosen if slug.partition(".")[0] in common] == meant
    every = [each.slug for each in strategies.all_strategies(workloads.get("outer_product"))]
    assert list(parse({**OUTER, "strategies": "all"}).strategies) == every
    (quickest,) = parse({**OUTER, "size": {"batch": 1_000_000, "side": 32}}).strategies
    assert quickest.startswith("batched."), "where all take long"


def test_a_request_of_a_run_is_asked_again_as_it_was_with_what_is_changed():
    """Of older ones, which name no allocator, with the default one."""
    asked = parse({**OUTER, "size": {"batch": 12, "side": 8}, "strategies": "loop.eager", "seed": 3})
    assert again(asked) == asked and again(asked, budget_s=60.0).budget_s == 60.0
    old = replace(asked, allocator=UNSET)
    assert again(old, strategies=["map_fn"]).allocator == "default"
    with pytest.raises(RequestError, match="workload 'gone' is not known"):
        again(replace(asked, workload="gone"))


def test_whatever_comes_in_is_a_request_or_one_sentence_that_names_it_and_what_is_valid():
    for raw, names in (
        ({}, ["no workload is named", "image_sqrt", "outer_product"]),
        (OUTER | {"size": {"side": 129}}, ["side=129 is not valid", "from 1 to 128"]),
        (OUTER | {"workload_options": {"model": "mlp"}}, ["outer_product has no option 'model'", "it has none"]),
        (OUTER | {"strategies": ["loop.eager"] * 1_001}, ["1,001 strategies", "at most 1,000"]),
        (OUTER | {"budget_s": math.nan}, ["budget must be 'auto' or from 1 to 86400 seconds; got nan"]),
    ):
        with pytest.raises(RequestError) as caught:
            parse(raw)
        assert all(name in str(caught.value) for name in names) and "\n" not in str(caught.value), caught.value
    fields = parse(OUTER).record().__struct_fields__
    values = (None, True, -1, 0.5, 2**70, math.inf, "", " , ", "9" * 40, "a\nb", b"x", [], [None], [[1]], {}, {"": {}})
    for field, value in itertools.product(fields, values):
        for raw in ({field: value}, {field: {"batch": value}}):
            with contextlib.suppress(RequestError):
                assert isinstance(parse({**OUTER, **raw}), Request), raw


def test_without_any_room_nothing_fits():
    """0 bytes are no missing limit."""
    asked, sweep = parse(OUTER), parse_sweep({**OUTER, "axes": [{"name": "batch", "range": "1:10"}]})
    assert fit.check(asked, 8 * GIB) is None and fit.forecast_sweep(sweep, 8 * GIB).points
    for room in ((8 * GIB, 0), (0, None), (0, 8 * GIB)):
        assert "0 B can be used; no batch fits" in str(fit.check(asked, *room))
    assert "limit is 0 MiB" in str(fit.check(replace(asked, memory_limit_mib=0), 8 * GIB))
    assert fit.forecast_sweep(sweep, 0).points == []


def test_what_cannot_fit_is_refused_with_the_largest_batch_that_does():
    limited = fit.check(parse({**OUTER, "size": {"batch": 1000, "side": 64}, "memory_limit_mib": 15}), 8 * GIB)
    assert limited is not None and "the memory limit is 15 MiB" in limited
    asked = parse({**OUTER, "size": {"batch": 10_000, "side": 32}, "strategies": "batched"})
    sentence = fit.check(asked, 8 * GIB)
    assert sentence is not None
    nearest = int(sentence.rpartition("batch=")[2].split()[0])
    assert 1 < nearest < 10_000
    for batch, fits in [(nearest, True), (nearest + 1, False)]:
        again = parse({**OUTER, "size": {"batch": batch, "side": 32}, "strategies": "batched"})
        assert (fit.check(again, 8 * GIB) is None) == fits


def test_tensors_fit_where_tensorflows_allocator_was_seen_to_hold_them():
    for limit, tensors, fits in (
        (64, (0.25, 62), True),
        (64, (0.25, 62.25), False),
        (64, (30, 30), True),
        (64, (30, 30, 0.1), False),
        (64, (20, 33), False),
        (64, (15, 15, 15, 15), True),
        (200, (30, 130), True),
    ):
        assert fit.fits_allocator(2**20 * limit, [2**20 * mib for mib in tensors]) == fits, (limit, tensors)


def test_a_batch_is_named_that_works_under_the_memory_limit():
    """Seen with 64 MiB: 248 outer products work at most, 123 in a Python loop. XLA takes no text."""

    def largest(workload: str, chosen: str, batch: int = 256) -> int:
        raw = {"workload": workload, "size": {"batch": batch}, "strategies": chosen, "memory_limit_mib": 64}
        return int(str(fit.check(parse(raw), 8 * GIB)).partition("by forecast batch=")[2].removesuffix(" fits."))

    assert 220 < largest("outer_product", "default") <= 248 and 50 < largest("outer_product", "loop.eager") <= 123
    assert largest("decode", "map_fn", 10**6) == largest("decode", "map_fn.graph", 10**6)
