"""Latency against memory: the front, and the fastest that fits."""

from measure.model.run import Latency, Measurement, Memory
from measure.statistics import pareto

MIB = 2**20


def item(slug: str, milliseconds: float, mib: float, outcome: str = "ok", twin_of: str | None = None) -> Measurement:
    mapper, mode = slug.partition("?")[0].split(".")
    options = {"chunk": int(slug.partition("chunk=")[2])} if "chunk=" in slug else {}
    seconds = milliseconds / 1e3
    return Measurement(
        strategy=slug, mapper=mapper, mode=mode, options=options, outcome=outcome, twin_of=twin_of,
        latency=Latency(median_s=seconds, low_s=seconds, high_s=seconds),
        memory=Memory(
            peak_bytes=int(mib * MIB), output_bytes=MIB, temporary_bytes=0, input_bytes=0, captured_bytes=0,
            method="events",
        ),
    )  # fmt: skip


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


def test_the_fastest_that_fits_is_named_and_none_where_none_does() -> None:
    def within(mib: float) -> str | None:
        entry = pareto.fastest_within(FOUND, mib * MIB)
        return entry.strategy if entry else None

    assert within(1000) == "vectorized_map.graph"
    assert within(64) == "vectorized_map.graph"
    assert within(63.9) == "chunked.graph?chunk=64"
    assert within(1) == "map_fn.graph"
    assert within(0.5) is None
