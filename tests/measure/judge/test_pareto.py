"""Latency against memory: the front."""

from msgspec.structs import replace

from measure.judge import pareto
from measure.run.run import Latency, Measurement
from tests.samples import measurement, memory

MIB = 2**20


def item(slug: str, milliseconds: float, mib: float, outcome: str = "ok", twin_of: str | None = None) -> Measurement:
    made, seconds = measurement(slug, [], outcome=outcome, twin_of=twin_of), milliseconds / 1e3
    latency = Latency(median_s=seconds, low_s=seconds, high_s=seconds)
    return replace(made, latency=latency, memory=memory(int(mib * MIB)))


FOUND = [
    item("map_fn.graph", 40, 1),
    item("vectorized_map.graph", 2, 64),
    item("chunked.graph?chunk=16", 8, 4),
    item("chunked.graph?chunk=4", 16, 2),
    item("chunked.graph?chunk=64", 4, 16),
    item("loop.eager", 50, 3),
    item("dataset.graph", 1, 0.1, outcome="wrong"),
    item("vectorized_map.graph#twin", 1.9, 64, twin_of="vectorized_map.graph"),
    Measurement(strategy="numpy.eager", mapper="numpy", mode="eager", outcome="out_of_memory"),
]


def test_the_front_is_what_nothing_beats_in_both() -> None:
    chunks = [f"chunked.graph?chunk={chunk}" for chunk in (64, 16, 4)]
    assert [each.strategy for each in pareto.front(FOUND)] == ["vectorized_map.graph", *chunks, "map_fn.graph"]
