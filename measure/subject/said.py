"""What subjects may say: the form of each event, so that what a strategy forges in their name is not taken in."""

from typing import Any

import msgspec

from measure.model.roofline import Rates
from measure.model.run import Correctness, Memory, OutcomeName
from measure.model.why import Why


class _Event(msgspec.Struct, tag_field="event"):
    """Base of the events; each is told by its ``event``."""


class Stage(_Event, tag="stage"):
    stage: str


class Ready(_Event, tag="ready"):
    runtime_s: float


class FirstCall(_Event, tag="first_call"):
    seconds: float


class Settled(_Event, tag="settled"):
    seconds: float
    calls: int


class OtherValues(_Event, tag="other_values"):
    seconds: float | None


class Sample(_Event, tag="sample"):
    seconds: float
    busy_cores: float


class Checked(_Event, tag="checked"):
    correctness: Correctness
    sentence: str | None


class Measured(_Event, tag="memory"):
    memory: Memory
    said: list[str]
    retraces: int


class ProcessPeak(_Event, tag="process_peak"):
    bytes: int | None


class Probed(_Event, tag="rates"):
    rates: Rates


class Room(_Event, tag="room"):
    bytes: int | None


class Explained(_Event, tag="why"):
    why: Why


class Saved(_Event, tag="saved"):
    pass


class Devices(_Event, tag="devices"):
    names: list[str]


class Error(_Event, tag="error"):
    outcome: OutcomeName
    type: str
    message: str
    detail: str


Said = (
    Stage
    | Ready
    | FirstCall
    | Settled
    | OtherValues
    | Sample
    | Checked
    | Measured
    | ProcessPeak
    | Probed
    | Room
    | Explained
    | Saved
    | Devices
    | Error
)


def is_well_formed(message: dict[str, Any]) -> bool:
    """Whether ``message`` is an event that a subject may send, with all its fields."""
    try:
        msgspec.convert(message, Said)
    except msgspec.ValidationError:
        return False
    return True
