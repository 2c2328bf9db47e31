"""Claims that are known: examples that do not work name what does, and what is about GPUs needs one."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from measure.claims import known, table
from measure.claims.known import devices
from measure.claims.predicates import AsQuick, QuickerBy
from measure.claims.spec import Claim, Compare, Predicate, Script, Swept
from measure.model.run_file import decode
from measure.model.script_end import ScriptEnd
from tests.browser import ROOT
from tests.claims import evidence, run

# The figure of an example that counts NaN in its results.
NAN = "nan_percent"
EXAMPLES = tuple(claim for claim in known.all_claims() if claim.id.startswith("example_"))
WORKS = {claim.id: claim.works_as for claim in known.all_claims() if claim.works_as}


def _ends() -> dict[str, ScriptEnd]:
    """How the script of each example ended in the visitor's example of a run, by the ids of claims."""
    seen = {item.need: item.script for item in decode((ROOT / "views/example_claims.json").read_bytes()).evidence or []}
    ends = {claim.id: seen.get(claim.needs[0].key) for claim in EXAMPLES}
    return {name: end for name, end in ends.items() if end is not None}


ENDS = _ends()


def is_of_time(test: Predicate) -> bool:
    """Whether there are latencies in the evidence that a test looks at."""
    return isinstance(test.need, Compare | Swept) or isinstance(test, QuickerBy | AsQuick)


def test_every_example_was_run_as_it_is_now():
    assert [claim.id for claim in EXAMPLES if claim.id not in ENDS] == []
    assert len(EXAMPLES) >= 16 and all(len(claim.needs) == 1 for claim in EXAMPLES)


def test_the_examples_that_fail_or_give_nan_name_the_form_that_works():
    broken = {name for name, end in ENDS.items() if end.error or end.figures.get(NAN)}
    assert len(broken) >= 7
    assert WORKS.keys() == broken


@pytest.mark.parametrize("name", WORKS)
def test_the_form_that_works_is_measured(name: str):
    assert len(set(WORKS[name])) == len(WORKS[name])
    for claim_id in WORKS[name]:
        claim = known.get(claim_id)
        assert claim is not None, claim_id
        assert any(map(is_of_time, claim.tests)), f"{claim_id} has no latencies"
        assert claim_id not in WORKS, "what works is no example that fails"
    needs_gpu = [each.needs_gpu for claim_id in WORKS[name] if (each := known.get(claim_id))]
    assert not all(needs_gpu), "one of them can be tried everywhere"


# --- as text ----------------------------------------------------------------------------------------------------------


def first_with_two() -> Claim:
    return next(claim for claim in known.all_claims() if len(claim.works_as) == 2)


def test_the_list_names_the_form_that_works():
    claim = first_with_two()
    a, b = claim.works_as
    shown = " ".join(table.listed().split())
    assert f"{claim.sentence} → The form that works is measured in {a} and {b}. " in shown
    assert shown.count("The form that works") == len(WORKS), "of no other claim"
    data = {each["id"]: each["works_as"] for each in json.loads(json.dumps(table.listing()))}
    assert data == {each.id: list(each.works_as) for each in known.all_claims()}


def test_a_verdict_stands_beside_the_form_that_works():
    claim, other = first_with_two(), next(claim for claim in known.all_claims() if not claim.works_as)
    a, b = claim.works_as
    tried = replace(run([claim], evidence(claim.tests, ["no"])), claims=[claim.id, other.id])
    shown = " ".join(table.render(tried).split())
    assert f"it cannot. → The form that works is measured in {a} and {b}." in shown
    assert shown.count("The form that works") == 1
    grid = table.markdown(tried)[-1]
    assert f"The form that works is measured in `{a}` and `{b}`. |" in grid and grid.count("The form that works") == 1


# --- GPUs -------------------------------------------------------------------------------------------------------------


def is_about_gpus(claim: Claim) -> bool:
    """Whether a claim measures on a GPU, or has a script that asks for one."""
    sources = (need.source if isinstance(need, Script) else need.device for need in claim.needs)
    return any("GPU" in source for source in sources)


@pytest.mark.parametrize("claim", known.all_claims(), ids=[claim.id for claim in known.all_claims()])
def test_what_is_about_gpus_needs_one_and_nothing_else_does(claim: Claim):
    assert claim.needs_gpu is is_about_gpus(claim)


def test_every_claim_of_devices_is_about_gpus():
    assert devices.CLAIMS and all(claim.needs_gpu and claim.id.startswith("gpu_") for claim in devices.CLAIMS)
    assert {claim.id for claim in devices.CLAIMS} == {claim.id for claim in known.all_claims() if claim.needs_gpu}


def test_needs_of_both_kinds_are_seen():
    """That the test above would see either: a device of a comparison, and one in a script."""
    kinds: dict[str, Any] = {type(need).__name__: need for claim in devices.CLAIMS for need in claim.needs}
    assert kinds.keys() == {"Compare", "Script"}
