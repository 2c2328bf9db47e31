"""Claims about mapping in TensorFlow, one file a claim or a few related ones: a new file is a new claim.

A file offers ``CLAIMS``, a tuple of `measure.claims.spec.Claim`.
"""

import functools
import importlib
from collections.abc import Mapping
from pathlib import Path

from measure.claims.spec import QUESTIONS, Claim


@functools.cache
def _read() -> tuple[dict[str, Claim], dict[str, str]]:
    known: dict[str, Claim] = {}
    broken: dict[str, str] = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem == "__init__":
            continue
        try:
            for claim in importlib.import_module(f"{__name__}.{path.stem}").CLAIMS:
                if claim.id in known:
                    raise ValueError(f"the id {claim.id!r} is another claim's")
                if claim.question not in QUESTIONS:
                    raise ValueError(f"{claim.id}: question {claim.question!r} is not one of {', '.join(QUESTIONS)}")
                known[claim.id] = claim
        except Exception as error:  # one bad file breaks nothing else
            broken[path.name] = f"{type(error).__name__}: {error}"
    return known, broken


def all_claims() -> tuple[Claim, ...]:
    """Return the claims by question, those that need a GPU last, and else by file."""
    known, _ = _read()
    order = list(QUESTIONS)
    return tuple(sorted(known.values(), key=lambda claim: (order.index(claim.question), claim.needs_gpu)))


def get(claim_id: str) -> Claim | None:
    """Return the claim with this id; None where it is not known here."""
    return _read()[0].get(claim_id)


def broken() -> Mapping[str, str]:
    """Return why a file offers no claims, by its name."""
    return _read()[1]
