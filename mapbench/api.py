"""The functions of `mapbench`: each starts a runner of its own, measures, and ends it."""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import workloads
from mapbench import progress
from mapbench.given import given
from mapbench.result import Result, SweepResult
from measure import runner
from measure.machine import allocator as allocators
from measure.model.request import parse
from measure.model.run import Run
from measure.sweep.request import parse_sweep
from strategies import mappers
from workloads.functions import Given

# Seconds between two looks at how a run stands, and until a run that was interrupted has to be gone.
_LOOK_S, _END_S = 0.2, 30.0


def compare(
    fn: Callable[..., Any],
    elems: Any,
    strategies: str | list[str] = "default",
    budget: float | None = None,
    *,
    size: Mapping[str, int] | None = None,
    batched: Callable[..., Any] | None = None,
    reference: Callable[..., Any] | None = None,
    title: str = "",
    presets: Mapping[str, Mapping[str, int]] | None = None,
    device: str = "CPU:0",
    seed: int = 0,
    allocator: str = "pool",
    quiet: bool = False,
) -> Result:
    """Measure ways of mapping a function over elements.

    ``fn`` takes one element. ``elems``: an array or tensor whose first axis is the batch, a ragged tensor or a list of
    arrays whose lengths differ, a nest of dicts and tuples of them, or a function that makes them, whose whole-number
    parameters with defaults are the sizes that ``size`` can change. ``strategies`` are written as on the command line,
    ``budget`` is seconds until the verdict. ``batched`` is a rewrite for the whole batch, ``reference`` gives its
    right results in NumPy. ``title`` stands in place of the function's name, and ``presets`` are sizes by name, as in
    ``{"Small": {"batch": 10}}``. ``allocator``: ``pool`` times with freed memory kept in the process, as
    ``TF_CPU_ALLOCATOR_USE_BFC=true`` does it, ``default`` without. In a notebook results are shown as they arrive;
    elsewhere progress goes to stderr; neither if ``quiet``. An interrupt ends the measuring, and what is known by then
    is returned.

    Raises `NotSendable` or `measure.model.request.RequestError`, both ValueErrors, with a sentence.
    """
    code = given(fn, elems, batched, reference, title, presets)
    asked = {"size": size, "strategies": strategies, "budget_s": budget}
    asked |= {"device": device, "seed": seed, "allocator": allocator}

    def submit(own: runner.Runner, slug: str) -> str:
        return own.submit(parse({**asked, "workload": slug}))

    return Result(_measured(code, seed, quiet, submit), _live(code, fn, batched))


def sweep(
    fn: Callable[..., Any],
    elems: Any,
    over: Mapping[str, str | Sequence[int]],
    strategies: str | list[str] = "default",
    budget: float = 60.0,
    *,
    size: Mapping[str, int] | None = None,
    batched: Callable[..., Any] | None = None,
    reference: Callable[..., Any] | None = None,
    title: str = "",
    presets: Mapping[str, Mapping[str, int]] | None = None,
    device: str = "CPU:0",
    seed: int = 0,
    allocator: str = "pool",
    quiet: bool = False,
) -> SweepResult:
    """Measure ways of mapping a function over a range of sizes, or of an option of strategies.

    ``over``: the range of one size or of two (``{"batch": "1:1000"}``, with 9 points ``"1:1000:9"``, values
    ``[1, 8, 64]``), or of an option (``{"chunk": "1:64"}``). ``budget`` is seconds for the whole sweep. All else is as
    for `compare`, and so is what is raised.
    """
    code = given(fn, elems, batched, reference, title, presets)
    asked = {"size": size, "strategies": strategies, "budget_s": budget}
    asked |= {"device": device, "seed": seed, "allocator": allocator}

    def submit(own: runner.Runner, slug: str) -> str:
        sizes = {parameter.name for parameter in workloads.get(slug).sizes}
        options = {option.name for mapper in mappers() for option in mapper.options} - sizes
        axes = [
            {
                "kind": "option" if name in options else "size",
                "name": name,
                **({"range": values} if isinstance(values, str) else {"values": list(values)}),
            }
            for name, values in over.items()
        ]
        return own.submit_sweep(parse_sweep({**asked, "workload": slug, "axes": axes}))

    return SweepResult(_measured(code, seed, quiet, submit), _live(code, fn, batched))


def best(fn: Callable[..., Any], elems: Any, **options: Any) -> Callable[[Any], Any]:
    """Return the mapped function of the fastest right strategy, ready to be called with a batch of any length.

    ``options`` are those of `compare`; ``allocator`` is the one of this process, where it is not named. Raises what
    `compare` does, and ValueError where no strategy was timed.
    """
    here = allocators.of_processor(os.environ, onednn=False)
    options.setdefault("allocator", "pool" if here == allocators.BFC else "default")
    result = compare(fn, elems, **options)
    return result.mapped(result.leader)


def _live(code: Given, fn: Callable[..., Any], batched: Callable[..., Any] | None) -> dict[str, Callable[..., Any]]:
    """The functions that were given, by their names in the code."""
    return {code.function: fn} | ({code.batched: batched} if batched is not None else {})


def _measured(code: Given, seed: int, quiet: bool, submit: Callable[[runner.Runner, str], str]) -> Run:
    """Have a runner look at the function and measure what is submitted; the run, which an interrupt ends early."""
    told = progress.of(quiet)
    own = runner.Runner(name=f"Python, {code.function}")
    try:
        told.say("TensorFlow is being loaded, and the function looked at")
        run_id = submit(own, own.give(code, seed=seed))
        try:
            _watch(own, run_id, told)
        except KeyboardInterrupt:
            own.cancel(run_id)
            own.wait(run_id, _END_S)
        snapshot = own.snapshot(run_id)
    finally:
        _close(own)
    assert snapshot is not None, "what was queued is known"
    told.end(snapshot.run)
    return snapshot.run


def _watch(own: runner.Runner, run_id: str, told: progress.Progress) -> None:
    """Wait for a run's end, and tell what happens meanwhile."""
    while not own.wait(run_id, _LOOK_S):
        snapshot = own.snapshot(run_id)
        if snapshot is not None:
            told.look(snapshot)


def _close(own: runner.Runner) -> None:
    """End the runner and its processes, also where whoever waits for that is interrupted again."""
    closing = threading.Thread(target=own.close, name="mapbench-close")
    closing.start()
    closing.join()
