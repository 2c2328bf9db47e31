"""Cases of the list of faults (`tests.fault_list`), all kinds and all stages among them; the whole list is tried by
``python -m tests.benchmarks.faults``."""

from collections.abc import Iterator

import pytest

from tests import fault_list
from tests.fault_list import Case, Stand

# Cases that wait for a timeout, or for a host that starts, take seconds.
_QUICK = [
    case
    for case in fault_list.cases()
    if fault_list.OF_SUBJECTS.get(case.kind) != "timeout" and case.kind not in fault_list.OF_HOSTS
]


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with fault_list.stand(tmp_path_factory.mktemp("faults")) as own:
        yield own


@pytest.mark.parametrize("case", fault_list.some(_QUICK, 40), ids=str)
def test_a_fault_at_any_moment_of_any_stage_ends_as_it_has_to(stand: Stand, case: Case):
    stand.try_case(case)


def test_a_strategy_that_hangs_and_a_host_that_is_killed_end_as_they_have_to(stand: Stand):
    stand.try_case(Case("hangs", "memory", "begin"))
    stand.try_case(Case("the host is killed", "sampling", "middle"))


def test_the_list_has_every_kind_at_every_stage_and_moment():
    found = fault_list.cases()
    kinds = {case.kind for case in found}
    assert len(found) == len(set(found)) == len(kinds) * len(fault_list.STAGES) * len(fault_list.MOMENTS) >= 300
    assert {case.kind for case in fault_list.some(found, 40)} == kinds
