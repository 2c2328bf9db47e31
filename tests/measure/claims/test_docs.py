"""docs/claims.md: the tables of the documents and the claims that name them say the same."""

import re

import pytest

from measure.claims import known
from measure.claims.spec import Claim, Script
from measure.claims.verdicts import judge
from tests.browser import ROOT
from views.result.texts import DOCUMENTS

TEXT = (ROOT / "docs/claims.md").read_text(encoding="utf-8")
SEEDS = tuple(DOCUMENTS)
HEAD = "| said, in our words | tried as |"
_HEADING = re.compile(r"^## Seed (\d): \S.*$", re.MULTILINE)
# In the second column all that stands in backticks, but for names with a dot, is an id.
_ID = re.compile(r"`(\w+)`")
_FAILS = re.compile(r"`(\w+)`: fails at line (\d+)")
# Examples that fail, and by which code.
FAILING = {
    "example_1_1_pixels": "image[row, column] =",
    "example_1_3_bytes": "dtype=tf.uint8",
    "example_3_1_sum": "session.run(",
    "example_3_2_polynomial": "session.run(",
    "example_3_3_whole": "session.run(",
    "example_5_2_gradients": "tf.random_uniform(",
}
_EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def rows(seed: str) -> list[list[str]]:
    """The cells of a document's table, without its head."""
    parts = _HEADING.split(TEXT)
    section = dict(zip((f"seed {number}" for number in parts[1::2]), parts[2::2], strict=True))[seed]
    head, line, *body = [text for text in section.splitlines() if text.startswith("|")]
    assert (head, line) == (HEAD, "|---|---|")
    return [[cell.strip() for cell in text.strip("|").split("|")] for text in body]


def tried(seed: str) -> set[str]:
    return {name for row in rows(seed) for name in _ID.findall(row[1])}


def test_the_documents_are_named_as_on_the_page():
    headings = [f"## {seed.capitalize()}: {name}" for seed, name in DOCUMENTS.items()]
    assert [match[0] for match in _HEADING.finditer(TEXT)] == headings


@pytest.mark.parametrize("seed", SEEDS)
def test_each_sentence_has_a_claim_or_a_reason(seed: str):
    assert rows(seed)
    assert [row for row in rows(seed) if len(row) != 2 or not all(row)] == []
    bare = [row for row in rows(seed) if not _ID.search(row[1]) and not row[1].startswith("no claim: ")]
    assert bare == []


@pytest.mark.parametrize("seed", SEEDS)
def test_each_claim_of_a_document_is_in_its_table(seed: str):
    named = {claim.id for claim in known.all_claims() if seed in {said.where for said in claim.said}}
    assert sorted(named - tried(seed)) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_each_claim_of_a_table_names_its_document(seed: str):
    claims = {name: known.get(name) for name in tried(seed)}
    assert sorted(name for name, claim in claims.items() if claim is None) == []
    others = [claim.id for claim in claims.values() if claim and seed not in {said.where for said in claim.said}]
    assert sorted(others) == []


def test_examples_fail_at_the_lines_that_the_tables_name():
    lines = {name: int(line) for name, line in _FAILS.findall(TEXT)}
    assert lines.keys() == FAILING.keys()
    for name, line in lines.items():
        claim = known.get(name)
        assert claim is not None
        (script,) = claim.needs
        assert isinstance(script, Script)
        assert FAILING[name] in script.source.splitlines()[line - 1], name


def test_the_example_is_a_claim():
    (source,) = _EXAMPLE.findall(TEXT)
    space: dict[str, object] = {}
    exec(compile(source, "<example>", "exec"), space)
    claims = space["CLAIMS"]
    assert isinstance(claims, tuple)
    (claim,) = claims
    assert isinstance(claim, Claim) and claim.needs and known.get(claim.id) is None
    assert judge(claim, {}, gpus=False).word == "cannot tell"
