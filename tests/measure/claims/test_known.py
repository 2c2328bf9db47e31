"""Claims that are known: each sentence of the documents in docs/claims.md names those that try it, or why none does."""

import re

from measure.claims import known, scripts
from measure.claims.spec import Script
from tests.engine import ROOT
from tests.strategies.test_scripts import undefined
from views.result.claims import DOCUMENTS

TEXT = (ROOT / "docs/claims.md").read_text(encoding="utf-8")
# In the second column all that stands in backticks, but for names with a dot, is an id.
_ID = re.compile(r"`(\w+)`")


def cells(seed: str) -> list[str]:
    """The second column of a document's table."""
    parts = re.split(r"^## Seed (\d): \S.*$", TEXT, flags=re.MULTILINE)
    section = dict(zip((f"seed {number}" for number in parts[1::2]), parts[2::2], strict=True))[seed]
    _, _, *body = [text for text in section.splitlines() if text.startswith("|")]
    return [row.strip("|").split("|")[1].strip() for row in body]


def test_each_claim_of_a_document_is_in_its_table_and_the_other_way_round():
    for seed in DOCUMENTS:
        bare = [cell for cell in cells(seed) if not _ID.search(cell) and not cell.startswith("no claim: ")]
        assert bare == [], "each sentence has a claim or a reason"
        tried = {name for cell in cells(seed) for name in _ID.findall(cell)}
        assert tried == {claim.id for claim in known.all_claims() if seed in claim.said}, seed


def test_every_script_defines_what_it_uses():
    sources = {need.source for claim in known.all_claims() for need in claim.needs if isinstance(need, Script)}
    assert [source for source in sources if undefined(scripts.whole(source))] == []
