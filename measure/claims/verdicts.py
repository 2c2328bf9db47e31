"""The verdict on a claim: computed from evidence alone, at every look, and never stored with the claim."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from measure.claims.figures import Missing
from measure.claims.spec import Claim, Predicate, Seen, Truth
from measure.model import text
from measure.model.run import Evidence, Run

Word = Literal["holds", "does not hold", "depends", "cannot tell", "cannot be tried here"]
WORDS: tuple[Word, ...] = ("holds", "does not hold", "depends", "cannot tell", "cannot be tried here")
_LONGEST = 400
# As an environment names them; each Linux has a name of its own.
_NO_LINUX = ("macOS", "Windows")
_MEASURING = "a run that measures it to its end"


@dataclass(frozen=True)
class Verdict:
    """A verdict with the sentence on what was seen; ``seen``: the same for each test of the claim, in its order."""

    word: Word
    sentence: str
    seen: tuple[Seen, ...] = ()


def of_run(claim: Claim, run: Run) -> Verdict:
    """The verdict on a claim by a run of claims."""
    evidence = run.evidence or []
    return judge(claim, {item.need: item for item in evidence}, run.environment)


def judge(claim: Claim, evidence: Mapping[str, Evidence], environment: Mapping[str, object]) -> Verdict:
    """The verdict on a claim by evidence, which is named by the keys of needs, from a machine with this environment."""
    if lacks := lacking(claim, environment):
        return Verdict("cannot be tried here", lacks)
    seen = tuple(_see(test, evidence) for test in claim.tests)
    words = _sentence(claim.tests, seen)
    cases: dict[str, set[Truth]] = {}
    for test, each in zip(claim.tests, seen, strict=True):
        cases.setdefault(test.when, set()).add(each.truth)
    truths = {_all_of(truths) for truths in cases.values()}
    if "mixed" in truths or {"yes", "no"} <= truths:
        return Verdict("depends", words, seen)
    if "unknown" in truths:
        return Verdict("cannot tell", words + _would(seen), seen)
    return Verdict("holds" if truths == {"yes"} else "does not hold", words, seen)


def lacking(claim: Claim, environment: Mapping[str, object]) -> str:
    """The sentence on what a machine lacks for trying a claim; nothing where it lacks nothing that is known."""
    if claim.needs_gpu and not environment.get("gpus"):
        return "It needs a GPU, and this machine has none."
    cores = environment.get("cores_granted")
    if isinstance(cores, int | float) and cores < claim.needs_cores:
        return f"It needs {claim.needs_cores} cores, and here are {cores:g}."
    system = environment.get("os")
    if claim.needs_linux and isinstance(system, str) and system.startswith(_NO_LINUX):
        return f"It needs Linux, which tells of the threads and the memory of a process, and this is {system}."
    return ""


def _all_of(truths: Collection[Truth]) -> Truth:
    """The answer of all tests of one case: one that is not so refutes it, whatever the others are."""
    return next(truth for truth in ("no", "mixed", "unknown", "yes") if truth in truths)


def _would(seen: Sequence[Seen]) -> str:
    """The sentence on what would tell what is unknown."""
    parts = dict.fromkeys(each.would for each in seen if each.truth == "unknown" and each.would)
    return f" What would tell: {text.listed(list(parts))}." if parts else ""


def _see(test: Predicate, evidence: Mapping[str, Evidence]) -> Seen:
    there = evidence.get(test.need.key)
    if there is None:
        return Seen("unknown", "it was not measured", _MEASURING)
    try:
        return test.see(there)
    except Missing as missing:
        return Seen("unknown", str(missing), _MEASURING)
    except Exception as error:  # a broken predicate costs its claim the verdict, and nothing else
        return Seen("unknown", f"its predicate is broken ({type(error).__name__}: {error})")


def _sentence(tests: Sequence[Predicate], seen: Sequence[Seen]) -> str:
    """Both sides of what depends, and otherwise all that was seen."""
    parts = [f"{test.when}: {each.words}" if test.when else each.words for test, each in zip(tests, seen, strict=True)]
    # Figures of a file from elsewhere may hold any words.
    whole = text.COMMANDS.sub("", " ".join("; ".join(dict.fromkeys(parts)).split()))
    whole = text.shortened(whole, _LONGEST)
    # A name, such as that of a strategy, is written as it is.
    if whole.partition(" ")[0].rstrip(":").isalpha():
        whole = whole[:1].upper() + whole[1:]
    return whole + ("" if whole.endswith((".", "…")) else ".")
