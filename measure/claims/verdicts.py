"""The verdict on a claim: computed from evidence alone, at every look, and never stored with the claim."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from measure.claims.figures import Missing
from measure.claims.spec import Claim, Predicate, Seen
from measure.model import text
from measure.model.run import Evidence, Run

Word = Literal["holds", "does not hold", "depends", "cannot tell", "cannot be tried here"]
WORDS: tuple[Word, ...] = ("holds", "does not hold", "depends", "cannot tell", "cannot be tried here")
_LONGEST = 400


@dataclass(frozen=True)
class Verdict:
    """A verdict with the sentence on what was seen; ``seen``: the same for each test of the claim, in its order."""

    word: Word
    sentence: str
    seen: tuple[Seen, ...] = ()


def of_run(claim: Claim, run: Run) -> Verdict:
    """The verdict on a claim by a run of claims."""
    evidence = run.evidence or []
    return judge(claim, {item.need: item for item in evidence}, gpus=bool(run.environment.get("gpus")))


def judge(claim: Claim, evidence: Mapping[str, Evidence], *, gpus: bool) -> Verdict:
    """The verdict on a claim by evidence, which is named by the keys of needs. ``gpus``: there is one."""
    if claim.needs_gpu and not gpus:
        return Verdict("cannot be tried here", "It needs a GPU, and this machine has none.")
    seen = tuple(_see(test, evidence) for test in claim.tests)
    truths = {each.truth for each in seen}
    words = _sentence(claim.tests, seen)
    if "mixed" in truths or {"yes", "no"} <= truths:
        return Verdict("depends", words, seen)
    if "unknown" in truths:
        return Verdict("cannot tell", words, seen)
    return Verdict("holds" if truths == {"yes"} else "does not hold", words, seen)


def _see(test: Predicate, evidence: Mapping[str, Evidence]) -> Seen:
    there = evidence.get(test.need.key)
    if there is None:
        return Seen("unknown", "it was not measured")
    try:
        return test.see(there)
    except Missing as missing:
        return Seen("unknown", str(missing))
    except Exception as error:  # a broken predicate costs its claim the verdict, and nothing else
        return Seen("unknown", f"its predicate is broken ({type(error).__name__}: {error})")


def _sentence(tests: Sequence[Predicate], seen: Sequence[Seen]) -> str:
    """Both sides of what depends, and otherwise all that was seen."""
    parts = [f"{test.when}: {each.words}" if test.when else each.words for test, each in zip(tests, seen, strict=True)]
    # Figures of a file from elsewhere may hold any words.
    whole = text.COMMANDS.sub("", " ".join("; ".join(dict.fromkeys(parts)).split()))
    whole = text.shortened(whole, _LONGEST)
    return whole[:1].upper() + whole[1:] + ("" if whole.endswith((".", "…")) else ".")
