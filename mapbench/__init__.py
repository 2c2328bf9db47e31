"""Mapbench in Python: which way of mapping a function over a batch to use in TensorFlow, here.

    import mapbench

    result = mapbench.compare(fn, elems)
    print(result)
    mapped = mapbench.best(fn, elems)

They measure in processes of their own, and leave the TensorFlow of their caller alone. A notebook draws their results.
What they raise, `NotSendable` and `RequestError`, are ValueErrors whose sentence says what is wrong.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import workloads
from mapbench.given import NotSendable
from mapbench.given import given as sendable
from mapbench.result import Result, SweepResult
from measure.engine import deriving
from measure.local import Following, Local
from measure.machine.environment import BFC, tensor_allocator
from measure.run.request import Request, RequestError, parse
from measure.run.run import Run
from measure.run.sweep_request import SweepRequest, parse_sweep
from strategies import mappers
from workloads.functions import Given

__all__ = ["NotSendable", "RequestError", "Result", "SweepResult", "best", "compare", "sweep"]


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
    ``budget`` is seconds until the verdict; None: about 12, and up to 60 while the answer is not usable. ``batched`` is
    a rewrite for the whole batch, ``reference`` gives its right results in NumPy. ``title`` stands in place of the
    function's name, and ``presets`` are sizes by name, as in ``{"Small": {"batch": 10}}``. ``allocator``: ``pool``
    times with freed memory kept in the process, as ``TF_CPU_ALLOCATOR_USE_BFC=true`` does it, ``default`` without.
    Progress goes to stderr, unless ``quiet``. An interrupt ends the measuring, and what is known by then is returned.

    Raises `NotSendable` or `RequestError`, both ValueErrors, with a sentence.
    """
    code = sendable(fn, elems, batched, reference, title, presets)
    asked = {"size": size, "strategies": strategies, "budget_s": budget}
    asked |= {"device": device, "seed": seed, "allocator": allocator}
    return Result(*_measured(code, fn, batched, asked, quiet, parse))


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
    code = sendable(fn, elems, batched, reference, title, presets)
    asked = {"size": size, "strategies": strategies, "budget_s": budget}
    asked |= {"device": device, "seed": seed, "allocator": allocator}

    def request(asked: Mapping[str, Any]) -> SweepRequest:
        sizes = {parameter.name for parameter in workloads.get(asked["workload"]).sizes}
        options = {option.name for mapper in mappers() for option in mapper.options} - sizes
        axes = []
        for name, values in over.items():
            named = {"range": values} if isinstance(values, str) else {"values": np.array(list(values)).tolist()}
            axes.append({"kind": "option" if name in options else "size", "name": name, **named})
        return parse_sweep({**asked, "axes": axes})

    return SweepResult(*_measured(code, fn, batched, asked, quiet, request))


def best(fn: Callable[..., Any], elems: Any, **options: Any) -> Callable[[Any], Any]:
    """Return the mapped function of the fastest right strategy, ready to be called with a batch of any length. Its name
    is that of the strategy; where others tie with it, a warning names them.

    ``options`` are those of `compare`; ``allocator`` is the one of this process, where it is not named. Raises what
    `compare` does, ValueError where no strategy was timed, and KeyboardInterrupt where it is interrupted.
    """
    options.setdefault("allocator", "pool" if tensor_allocator(onednn=False) == BFC else "default")
    result = compare(fn, elems, **options)
    if result.run.status == "cancelled":
        raise KeyboardInterrupt
    leader = result.leader
    if others := result.run.ranking[0][1:]:
        warnings.warn(f"{leader} ties with {', '.join(others)}: a rerun may name another of them", stacklevel=2)
    return result.mapped(leader)


def _measured(
    code: Given, fn: Callable[..., Any], batched: Callable[..., Any] | None, asked: Mapping[str, Any], quiet: bool,
    request: Callable[[Mapping[str, Any]], Request | SweepRequest],
) -> tuple[Run, dict[str, Callable[..., Any]]]:  # fmt: skip
    """The run of a function, which an interrupt ends early, and the functions that were given, by their names in the
    code. Raises `RequestError`, and KeyboardInterrupt where nothing was measured by then."""
    deriving.check(code)
    follower = Following(quiet=quiet)
    with Local(f"Python, {code.function}", follower.say) as local:
        follower.say("TensorFlow is being loaded, and the function looked at")
        workload = local.give(code, asked["seed"])
        run, _ = local.measure(request({**asked, "workload": workload}), follower.look)
    return run, {code.function: fn} | ({code.batched: batched} if batched is not None else {})
