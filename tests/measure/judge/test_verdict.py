"""The sentences of the verdict: the factor first, no winner among ties, and what default memory changes."""

from msgspec.structs import replace

from measure.judge.analysis import analyse
from measure.judge.findings import findings
from measure.judge.verdict import verdict
from measure.output import export, table
from measure.run.run import DEFAULT_MEMORY, Control, Measurement, Run
from tests.samples import FACTORS, constant, measurement, memory, run_of

TIGHT = [1.001, 1.0, 1.0, 1.0005, 1.0]


def with_memory(item: Measurement, peak_bytes: int) -> Measurement:
    return replace(item, memory=memory(peak_bytes))


def analysed(*items: Measurement) -> Run:
    return analyse(run_of(*items))


def test_the_verdict_has_the_factor_first_and_no_winner_among_ties() -> None:
    fast = with_memory(measurement("batched.graph", constant(1.42e-3, TIGHT)), 100 * 2**20)
    slow, near = (measurement("loop.eager", constant(seconds, TIGHT)) for seconds in (52.5e-3, 1.4202e-3))
    assert analysed(slow, fast).verdict == (
        "batched.graph is fastest: 37× (95% CI 34–40) faster than loop.eager. 1.4 ms per call (±6%), 100.0 MiB."
    )
    assert analysed(fast).verdict.startswith("batched.graph takes 1.4 ms per call (±"), "alone it is no fastest"
    tie = analysed(fast, with_memory(near, 2**20)).verdict
    leads = "2-way tie within 9%: loop.eager and batched.graph, 1.42 ms per call."
    assert tie == f"{leads} loop.eager needs the least memory, 1.00 MiB."


def test_a_tie_that_the_run_cannot_resolve_is_not_called_closer() -> None:
    run = analysed(measurement("a.graph", constant(1e-3, TIGHT)), measurement("b.graph", constant(1.0002e-3, TIGHT)))
    for resolution, words in (
        (0.001, "2-way tie within 9%"),
        (0.115, "2-way tie within 12%"),
        (0.26, "Cannot tell apart"),
    ):
        control = Control(strategy="a.graph", ratio=1, low=1, high=1, resolution=resolution)
        assert verdict(findings(replace(run, control=control))).startswith(words), resolution


def with_faults(item: Measurement, faults: float) -> Measurement:
    replicas = [replace(replica, faults=[faults] * len(replica.samples_s)) for replica in item.replicas]
    return replace(item, replicas=replicas)


def run(*, faults: float = 5_020.0, **default_s: float) -> Run:
    """``a`` takes 4 ms, ``b`` 5 ms, and ``default_s`` with the default allocator, ``a`` with page faults."""
    items = [with_faults(measurement(slug, constant(s, FACTORS)), 0.0) for slug, s in (("a", 4e-3), ("b", 5e-3))]
    items += [
        with_faults(measurement(slug + DEFAULT_MEMORY, [[seconds] * 5] * 2, twin_of=slug), faults * (slug == "a"))
        for slug, seconds in default_s.items()
    ]
    return analyse(run_of(*items))


def test_a_leader_that_is_clearly_slower_with_default_memory_is_said_with_its_page_faults_and_who_leads_then() -> None:
    alone, led = run(a=12.9e-3).verdict, run(a=12.9e-3, b=5e-3).verdict
    assert " With this machine's default allocator a takes 12.9 ms (5,020 page faults per call). " in alone
    assert "a takes 12.9 ms (5,020 page faults per call), and b is fastest at 5.00 ms. " in led
    assert led.startswith("a is fastest: 1.25× "), "ranks are of memory from a pool"


def test_nothing_is_said_where_there_is_nothing_to_tell() -> None:
    hardly_slower, without_a_reason, not_to_be_taken = run(a=4.4e-3), run(a=12.9e-3, faults=0.0), run(b=12.9e-3)
    for silent in (run(), hardly_slower, without_a_reason, not_to_be_taken):
        assert "default allocator" not in silent.verdict


def test_its_column_is_there_where_it_was_timed_and_in_csv_always() -> None:
    for run_, is_there in ((run(a=12.9e-3), True), (run(), False)):
        result = findings(run_)
        head, first, *_ = table.cells(result)
        assert ("default memory" in head) == ("12.9 ms" in first) == is_there
        assert ("default memory" in {column.page for column in table.columns("page", result)}) == is_there
        assert ("default memory" in export.markdown(run_)) == is_there
        assert table.columns("csv", result)[-1].csv == "default_memory_s"
