"""A piece of work as it stands in the store: what is asked for beside the run's own request, and how far it is."""

from collections.abc import Mapping
from typing import Any, Literal

from measure.model.run import Stage, Struct
from workloads.functions import Given, OwnFunction

# Of a run that is measured; of one that has ended and is explained; of the check of a function of a person's own.
Kind = Literal["measure", "explain", "check"]
Order = Literal["", "cancel", "stop"]


class Job(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``why``: strategies are explained in the end; ``continue_from``: the sweep whose points are taken over. Of a
    check: the function, and the sizes and the seed of its elements."""

    why: bool = False
    continue_from: str | None = None
    given: Given | None = None
    size: dict[str, int] = {}
    seed: int = 0


class Standing(Struct, frozen=True, kw_only=True):
    """The standing of work that is being done. ``stages``: slug → where the strategy stands; ``round_number``: of the
    round in which is sampled now; ``rough_s``: seconds of a call of each strategy, as its memory subject has it."""

    message: str = ""
    stages: Mapping[str, Stage] = {}
    round_number: int | None = None
    rough_s: Mapping[str, float] = {}


class Answer(Struct, frozen=True, kw_only=True):
    """The end of a check: the function with what was derived of it, or the sentence why it cannot be measured."""

    own: OwnFunction | None = None
    refusal: str = ""


class WorkerState(Struct, frozen=True, kw_only=True):
    """A worker as pages see it. ``devices`` are names like ``CPU:0``, known once TensorFlow is loaded; ``details``:
    what it says of them; ``message``: a sentence for people. ``runs`` (``kind status``), ``outcomes`` and
    ``measured_s`` are counted since its start."""

    state: Literal["starting", "ready", "restarting", "failed", "absent"] = "starting"
    message: str = ""
    devices: tuple[str, ...] = ()
    details: dict[str, Any] | None = None
    restarts: int = 0
    start_method: str = ""
    runs: dict[str, int] = {}
    outcomes: dict[str, int] = {}
    measured_s: float = 0.0
