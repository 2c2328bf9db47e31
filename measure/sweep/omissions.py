"""The reasons why a strategy is not measured at a point of a sweep: what kind each is of, and its sentence."""

from measure.model.run import Error

# Types of errors: by forecast there is too little memory, or time; a smaller point was too much already.
DOES_NOT_FIT, OVER_BUDGET, SMALLER_FAILED = "DoesNotFit", "OverBudget", "LeftOut"
_KINDS = (DOES_NOT_FIT, OVER_BUDGET, SMALLER_FAILED)

_NOT_RUN, _NOT_TIMED = "not run here: ", "not timed here: "


def not_run(kind: str, reason: str) -> Error:
    """The error of a strategy that is not run at all; ``kind``: one of the types above."""
    return Error(type=kind, message=f"{_NOT_RUN}{reason}")


def not_timed(reason: str) -> Error:
    """The error of a strategy of which memory and correctness may be known, and the time was too short for more."""
    return Error(type=OVER_BUDGET, message=f"{_NOT_TIMED}{reason}")


def reason(error: Error) -> str:
    """The sentence of an error, where it is an omission's without the words that it is one."""
    return error.message.removeprefix(_NOT_RUN).removeprefix(_NOT_TIMED) if error.type in _KINDS else error.message
