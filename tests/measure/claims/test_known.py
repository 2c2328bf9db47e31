"""Claims that are known: docs/claims.md names them, examples that do not work name what does, and what is about GPUs
needs one."""

import re

from measure.claims import known
from measure.claims.predicates import AsQuick, QuickerBy
from measure.claims.spec import Compare, Predicate, Swept
from measure.model.run_file import decode
from measure.model.script_end import ScriptEnd
from tests.engine import ROOT
from views.result.texts import DOCUMENTS

# The figure of an example that counts NaN in its results.
NAN = "nan_percent"
EXAMPLES = tuple(claim for claim in known.all_claims() if claim.id.startswith("example_"))
WORKS = {claim.id: claim.works_as for claim in known.all_claims() if claim.works_as}
TEXT = (ROOT / "docs/claims.md").read_text(encoding="utf-8")
# In the second column all that stands in backticks, but for names with a dot, is an id.
_ID = re.compile(r"`(\w+)`")


def ends() -> dict[str, ScriptEnd]:
    """How the script of each example ended in the visitor's example of a run, by the ids of claims."""
    seen = {item.need: item.script for item in decode((ROOT / "views/example_claims.json").read_bytes()).evidence or []}
    found = {claim.id: seen.get(claim.needs[0].key) for claim in EXAMPLES}
    return {name: end for name, end in found.items() if end is not None}


def cells(seed: str) -> list[str]:
    """The second column of a document's table."""
    parts = re.split(r"^## Seed (\d): \S.*$", TEXT, flags=re.MULTILINE)
    section = dict(zip((f"seed {number}" for number in parts[1::2]), parts[2::2], strict=True))[seed]
    _, _, *body = [text for text in section.splitlines() if text.startswith("|")]
    return [row.strip("|").split("|")[1].strip() for row in body]


# --- examples, and docs/claims.md ------------------------------------------------------------------------------------


def test_the_examples_that_fail_or_give_nan_name_a_form_that_works_and_is_measured():
    seen = ends()
    assert [claim.id for claim in EXAMPLES if claim.id not in seen] == [], "every example was run as it is now"
    assert WORKS.keys() == {name for name, end in seen.items() if end.error or end.figures.get(NAN)}
    for name, works_as in WORKS.items():
        claims = [known.get(claim_id) for claim_id in works_as]
        assert all(claim and any(map(is_of_time, claim.tests)) for claim in claims), f"{name}: no latencies"
        assert not set(works_as) & WORKS.keys() and not all(claim.needs_gpu for claim in claims if claim)


def is_of_time(test: Predicate) -> bool:
    """Whether there are latencies in the evidence that a test looks at."""
    return isinstance(test.need, Compare | Swept) or isinstance(test, QuickerBy | AsQuick)


def test_each_claim_of_a_document_is_in_its_table_and_the_other_way_round():
    for seed in DOCUMENTS:
        bare = [cell for cell in cells(seed) if not _ID.search(cell) and not cell.startswith("no claim: ")]
        assert bare == [], "each sentence has a claim or a reason"
        tried = {name for cell in cells(seed) for name in _ID.findall(cell)}
        assert tried == {claim.id for claim in known.all_claims() if seed in {said.where for said in claim.said}}, seed


def test_examples_end_as_the_tables_say():
    """Each with the line and the class of its error, as the visitor's example has it, and no other one."""
    fails = re.findall(r"`(\w+)`: fails at line (\d+) with an? (\w+)", TEXT)
    said = {name: f"line {line}: {error}" for name, line, error in fails}
    for cell in (cell for seed in DOCUMENTS for cell in cells(seed)):
        said |= dict.fromkeys(re.findall(r"^`(example_\w+)`: runs", cell), "")
    assert said == {name: ":".join(end.error.split(":")[:2]) for name, end in ends().items()}
