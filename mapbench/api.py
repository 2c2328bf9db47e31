"""The functions of `mapbench`: each starts a runner of its own, measures, and ends it."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

from mapbench.given import given
from mapbench.result import Result
from measure import runner
from measure.model.request import parse

# Seconds between two looks at how a run stands, and until a run that was interrupted has to be gone.
_LOOK_S, _END_S = 0.2, 30.0


def compare(
    fn: Callable[..., Any],
    elems: Any,
    strategies: str | list[str] = "default",
    budget: float = 12.0,
    *,
    size: Mapping[str, int] | None = None,
    batched: Callable[..., Any] | None = None,
    reference: Callable[..., Any] | None = None,
    device: str = "CPU:0",
    seed: int = 0,
    quiet: bool = False,
) -> Result:
    """Measure ways of mapping a function over elements.

    ``fn`` takes one element. ``elems``: an array or tensor whose first axis is the batch, a dict or tuple of them, or a
    function that makes them, whose whole-number parameters with defaults are the sizes that ``size`` can change.
    ``strategies`` are written as on the command line, ``budget`` is seconds of timing. ``batched`` is a rewrite for the
    whole batch, ``reference`` gives the right results of it in NumPy. Progress goes to stderr unless ``quiet``. An
    interrupt ends the measuring, and what is known by then is returned.

    Raises `NotSendable` or `measure.model.request.RequestError`, both ValueErrors, with a sentence.
    """
    code = given(fn, elems, batched, reference)
    own = runner.Runner(name=f"Python, compare {code.function}")
    try:
        slug = own.give(code, seed)
        asked = {"workload": slug, "size": size, "strategies": strategies, "budget_s": budget}
        run_id = own.submit(parse({**asked, "device": device, "seed": seed}))
        try:
            _watch(own, run_id, quiet)
        except KeyboardInterrupt:
            own.cancel(run_id)
            own.wait(run_id, _END_S)
        snapshot = own.snapshot(run_id)
    finally:
        own.close()
    assert snapshot is not None, "what was queued is known"
    live = {code.function: fn} | ({code.batched: batched} if batched is not None else {})
    return Result(snapshot.run, live)


def best(fn: Callable[..., Any], elems: Any, **options: Any) -> Callable[[Any], Any]:
    """Return the mapped function of the fastest right strategy, ready to be called with a batch of any length.

    ``options`` are those of `compare`. Raises what `compare` does, and ValueError where no strategy was timed.
    """
    result = compare(fn, elems, **options)
    return result.mapped(result.leader)


def _watch(own: runner.Runner, run_id: str, quiet: bool) -> None:
    """Wait for a run's end, and say what happens meanwhile."""
    last = ""
    while not own.wait(run_id, _LOOK_S):
        snapshot = own.snapshot(run_id)
        if snapshot is not None and snapshot.message != last and not quiet:
            last = snapshot.message
            print(last, file=sys.stderr, flush=True)
