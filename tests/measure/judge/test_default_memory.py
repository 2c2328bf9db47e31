"""Latencies with the machine's default memory: who is slower with it, who leads with it, and what it leaves alone."""

import pytest
from msgspec.structs import replace

from measure.judge.analysis import analyse
from measure.judge.findings import findings
from measure.output import columns, export, table
from measure.run.run import DEFAULT_MEMORY, Code, Measurement, Run
from tests.samples import FACTORS, constant, measurement, run_of

CURE = "TF_CPU_ALLOCATOR_USE_BFC=true before importing TensorFlow avoids them."


def with_faults(item: Measurement, faults: float) -> Measurement:
    replicas = [replace(each, faults=[faults] * len(each.samples_s)) for each in item.replicas]
    return replace(item, replicas=replicas)


def run(*, faults: float = 5_020.0, source: str = "", **default_s: float) -> Run:
    """``a`` takes 4 ms, ``b`` 5 ms, and ``default_s`` with the default allocator, ``a`` with page faults."""
    items = [with_faults(measurement(slug, constant(s, FACTORS)), 0.0) for slug, s in (("a", 4e-3), ("b", 5e-3))]
    items[0] = replace(items[0], code=Code(source=source, sha256=""))
    items += [
        with_faults(measurement(slug + DEFAULT_MEMORY, [[seconds] * 5], twin_of=slug), faults * (slug == "a"))
        for slug, seconds in default_s.items()
    ]
    return analyse(run_of(*items))


def test_a_leader_that_is_clearly_slower_with_default_memory_is_said_with_its_page_faults() -> None:
    said = run(a=12.9e-3).verdict
    assert said.endswith(f" With this machine's default memory a takes 12.9 ms: 5,020 page faults a call. {CURE}")
    told = findings(run(a=12.9e-3)).row("a").default
    assert (told.strategy, told.faults, told.pool_faults) == ("a", 5_020.0, 0.0)
    assert told.ratio.low < 12.9 / 4 < told.ratio.high and told.is_slower


def test_who_leads_with_default_memory_is_named_where_the_leader_does_not() -> None:
    said = run(a=12.9e-3, b=5e-3).verdict
    assert f"a takes 12.9 ms: 5,020 page faults a call, and b leads at 5.00 ms. {CURE}" in said
    assert said.startswith("1.25 × "), "ranks are of memory from a pool"


def test_a_leader_of_numpy_is_told_of_its_own_lines() -> None:
    assert "avoids them" not in (said := run(a=12.9e-3, source="ctypes.CDLL(None).mallopt(-4, 0)").verdict)
    assert said.endswith("The lines of its script that call mallopt avoid them.")


@pytest.mark.parametrize(
    "known",
    [
        run(),
        run(a=4.4e-3),  # hardly slower
        run(a=12.9e-3, faults=0.0),  # nothing was counted that says why
        run(b=12.9e-3),  # not the one to take
    ],
)
def test_nothing_is_said_where_there_is_nothing_to_tell(known: Run) -> None:
    assert "default memory" not in known.verdict


def test_the_column_is_there_where_it_was_timed_and_in_csv_always() -> None:
    timed, untimed = run(a=12.9e-3), run()
    for run_, is_there in ((timed, True), (untimed, False)):
        found = findings(run_)
        head, first, *_ = table.cells(found)
        assert ("default memory" in head) == ("12.9 ms" in first) == is_there
        assert ("default memory" in {column.page for column in columns.of("page", found)}) == is_there
        assert ("default memory" in export.markdown(run_)) == is_there
    assert columns.of("csv", findings(untimed))[-1].csv == "default_memory_s"
