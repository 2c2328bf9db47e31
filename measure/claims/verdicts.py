"""Verdicts on claims: computed from evidence alone, at every look, and never stored with the claim."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from measure.claims import known
from measure.claims.spec import Claim, Missing, Predicate, Seen, Truth
from measure.run import text
from measure.run.run import Evidence, Run

Word = Literal["holds", "does not hold", "depends", "cannot tell", "cannot be tried here"]
WORDS: tuple[Word, ...] = get_args(Word)
# The same of several claims.
_PLURAL: Mapping[Word, str] = {"holds": "hold", "does not hold": "do not hold", "depends": "depend"}
_LONGEST = 700


@dataclass(frozen=True)
class Verdict:
    """A verdict with the sentence on what was seen; ``seen``: the same for each test of the claim, in its order."""

    word: Word
    sentence: str
    seen: tuple[Seen, ...] = ()


def of_claims(run: Run) -> list[tuple[Claim, Verdict]]:
    """The verdicts of a run on those of its claims that are still tried, by question."""
    return [(claim, of_run(claim, run)) for claim in known.all_claims() if claim.id in (run.claims or ())]


def gone(run: Run) -> list[str]:
    ids = {claim.id for claim in known.all_claims()}
    return [claim_id for claim_id in run.claims or () if claim_id not in ids]


def summary(run: Run) -> str:
    """The verdicts of a run, counted: «Of 41 claims 31 hold, 6 do not hold and 4 depend.»"""
    counts = Counter(verdict.word for _, verdict in of_claims(run))
    parts = [f"{count} {_PLURAL.get(word, word) if count > 1 else word}" for word in WORDS if (count := counts[word])]
    asked = len(run.claims or ())
    if count := len(gone(run)):
        parts.append(f"{count} {'is' if count == 1 else 'are'} no longer tried")
    return f"Of {text.counted(asked, 'claim')} {text.listed(parts)}." if parts else "No claim was tried."


def of_run(claim: Claim, run: Run) -> Verdict:
    return judge(claim, {item.need: item for item in run.evidence or []}, run.environment)


def tells_of(claim: Claim, run: Run) -> bool:
    """True if a run tells of a claim: all that it needs is there, or the machine lacked what it needs."""
    there = {item.need for item in run.evidence or []}
    lacks = claim.id in (run.claims or []) and lacking(claim, run.environment)
    return bool(lacks) or there.issuperset(need.key for need in claim.needs)


def lacking(claim: Claim, environment: Mapping[str, object]) -> str:
    """The sentence on what a machine lacks for trying a claim; nothing where it lacks nothing."""
    if claim.needs_gpu and not environment.get("gpus"):
        return "It needs a GPU, and this machine has none."
    return ""


def judge(claim: Claim, evidence: Mapping[str, Evidence], environment: Mapping[str, object]) -> Verdict:
    """The verdict on a claim by evidence, which is named by the keys of needs, from a machine with this environment."""
    if lacks := lacking(claim, environment):
        return Verdict("cannot be tried here", lacks)
    seen = tuple(_see(test, evidence) for test in claim.tests)
    cases: dict[str, set[Truth]] = {}
    for test, answer in zip(claim.tests, seen, strict=True):
        cases.setdefault(test.when, set()).add(answer.truth)
    # A test that is not so refutes its case, whatever the others are.
    of_cases = {"no" if "no" in truths else "unknown" if "unknown" in truths else "yes" for truths in cases.values()}
    word: Word = "holds" if of_cases == {"yes"} else "does not hold"
    if {"yes", "no"} <= of_cases:
        word = "depends"
    elif "unknown" in of_cases:
        word = "cannot tell"
    return Verdict(word, _sentence(claim.tests, seen), seen)


def _see(test: Predicate, evidence: Mapping[str, Evidence]) -> Seen:
    try:
        return test.see(evidence.get(test.need.key) or Evidence(need=test.need.key))
    except Missing as missing:
        return Seen("unknown", str(missing))
    except KeyError as error:  # a strategy, a time or a figure of this name
        return Seen("unknown", f"{error.args[0]} was not measured")


def _sentence(tests: Sequence[Predicate], seen: Sequence[Seen]) -> str:
    """All that was seen; a threshold that is that of all stands once, at the end."""
    thresholds = {answer.threshold for answer in seen}
    parts, case = [], ""
    for test, answer in zip(tests, seen, strict=True):
        head = f"{test.when}: " if test.when not in ("", case) else ""
        parts.append(head + answer.words + (answer.claimed if len(thresholds) > 1 else ""))
        case = test.when
    if len(thresholds) == 1 and (threshold := thresholds.pop()):
        parts.append(f"the claim says {threshold}")
    # Figures of a file from elsewhere may hold any words.
    whole = text.COMMANDS.sub("", " ".join("; ".join(dict.fromkeys(parts)).split()))
    return text.sentence(text.shortened(whole, _LONGEST))
