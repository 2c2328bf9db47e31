"""Claims about mapping in TensorFlow, by what they are about: an entry in one of these files is a claim."""

from collections.abc import Mapping

from measure.claims.known import gpu, limits, memory, speed, tracing
from measure.claims.spec import QUESTIONS, Claim

_ALL = [claim for file in (speed, memory, tracing, limits, gpu) for claim in file.CLAIMS]
_ORDER = list(QUESTIONS)
_BY_ID: Mapping[str, Claim] = {claim.id: claim for claim in _ALL}


def all_claims() -> tuple[Claim, ...]:
    """The claims by question, those that need a GPU last."""
    return tuple(sorted(_ALL, key=lambda claim: (_ORDER.index(claim.question), claim.needs_gpu)))


def get(claim_id: str) -> Claim | None:
    """The claim with this id; None where it is not known here."""
    return _BY_ID.get(claim_id)
