"""The part of a request that its run does not hold."""

from measure.model.run import Struct


class Asked(Struct, frozen=True, kw_only=True):
    """``why``: strategies are explained in the end; ``continue_from``: the sweep whose points are taken over."""

    why: bool = False
    continue_from: str | None = None
