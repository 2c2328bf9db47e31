"""Measuring for a caller in this process: the function is looked at and measured, which an interrupt ends early."""

from collections.abc import Callable

from measure import following
from measure.engine import deriving
from measure.engine.explanation import Keep
from measure.local import Local
from measure.making import Making, Publish
from measure.model.request import Request
from measure.model.run import Run
from measure.recording import Measuring
from measure.sweep.request import SweepRequest
from workloads.functions import Given


def measured(code: Given, seed: int, quiet: bool, request: Callable[[str], Request | SweepRequest]) -> Run:
    """Return the run of a function, which an interrupt ends early. ``request`` makes what is asked for of the slug of
    its workload. Raises `RequestError`, and KeyboardInterrupt where nothing was measured by then."""
    deriving.check(code)
    follower = following.Following()
    local = Local(f"Python, {code.function}", (lambda line: None) if quiet else follower.say)
    with local.interruptible():
        try:
            if not quiet:
                follower.say("TensorFlow is being loaded, and the function looked at")
            asked = request(local.give(code, seed=seed))

            def make(making: Making, run_id: str, publish: Publish, keep: Keep) -> Measuring:
                if isinstance(asked, SweepRequest):
                    return making.sweep(run_id, asked, publish)
                return making.comparison(run_id, asked, publish)

            local.check(asked)
            return local.measure(make, (lambda view: None) if quiet else follower.look).run
        finally:
            local.close()
