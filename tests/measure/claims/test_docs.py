"""docs/claims.md: the tables of the documents and the claims that name them say the same, and of examples how they
were seen to end."""

import re

import pytest

from measure.claims import known
from measure.claims.spec import Claim, Script
from measure.claims.verdicts import judge
from tests.browser import ROOT
from tests.measure.claims.test_known import ENDS, NAN, WORKS
from views.result.texts import DOCUMENTS

TEXT = (ROOT / "docs/claims.md").read_text(encoding="utf-8")
SEEDS = tuple(DOCUMENTS)
HEAD = "| said, in our words | tried as |"
# Sentences of each document. A row more or less is a sentence that was found or dropped.
ROWS = {"seed 1": 35, "seed 2": 32, "seed 3": 31, "seed 4": 31, "seed 5": 25}
_HEADING = re.compile(r"^## Seed (\d): \S.*$", re.MULTILINE)
# In the second column all that stands in backticks, but for names with a dot, is an id.
_ID = re.compile(r"`(\w+)`")
_FAILS = re.compile(r"`(\w+)`: fails at line (\d+) with an? (\w+)")
_RUNS = re.compile(r"^`(example_\w+)`: runs( and gives NaN)?\b")
_MEASURED = "; the form that works is measured in "
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
    assert len(rows(seed)) == ROWS[seed]
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
    lines = {name: int(line) for name, line, _ in _FAILS.findall(TEXT)}
    assert lines.keys() == FAILING.keys()
    for name, line in lines.items():
        claim = known.get(name)
        assert claim is not None
        (script,) = claim.needs
        assert isinstance(script, Script)
        assert FAILING[name] in script.source.splitlines()[line - 1], name


def test_examples_end_as_the_tables_say():
    """Each with the line and the class of its error, as the visitor's example has it, and no other one."""
    said = {name: f"line {line}: {error}" for name, line, error in _FAILS.findall(TEXT)}
    gives_nan = {}
    for name, nan in (match.groups() for seed in SEEDS for _, cell in rows(seed) if (match := _RUNS.match(cell))):
        said[name], gives_nan[name] = "", bool(nan)
    seen = {name: ":".join(end.error.split(":")[:2]) for name, end in ENDS.items()}
    assert said == seen
    assert gives_nan == {name: bool(end.figures.get(NAN)) for name, end in ENDS.items() if not end.error}


def test_the_form_that_works_stands_beside_each_example_that_does_not():
    named = {}
    for cell in (row[1] for seed in SEEDS for row in rows(seed) if _MEASURED in row[1]):
        ends, works = cell.split(_MEASURED)
        (name,) = [found for found in _ID.findall(ends) if found in ENDS]
        named[name] = tuple(_ID.findall(works))
    assert named == WORKS


def test_the_example_is_a_claim():
    (source,) = _EXAMPLE.findall(TEXT)
    space: dict[str, object] = {}
    exec(compile(source, "<example>", "exec"), space)
    claims = space["CLAIMS"]
    assert isinstance(claims, tuple)
    (claim,) = claims
    assert isinstance(claim, Claim) and claim.needs and known.get(claim.id) is None
    assert judge(claim, {}, {}).word == "cannot tell"
