"""Side effects of an element function: whether a strategy has all that a Python loop over the same elements has.

Prints, assignments and calls into Python are nothing that a result shows. `tf.vectorized_map` has them for the first
element alone, and what Python does by itself happens in a graph only while it is traced.
"""

import contextlib
import logging
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from measure.subject import correctness, state

# So many elements tell what happens for all, and cost little.
_MOST_ELEMENTS = 8
# A line of TensorFlow's own log among what is printed.
_LOG = re.compile(r"[IWEF]\d{4} \d\d:|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|WARNING:tensorflow:")
_MOST_SHOWN = 40


@dataclass(frozen=True)
class _Seen:
    """Two calls with the same elements. ``lines`` printed and ``calls`` into Python are those of the second, since the
    first is traced, too; ``outputs`` are those of the first, and ``python`` and ``variables`` the state after both."""

    elements: int
    outputs: Any
    lines: int
    calls: int
    python: Mapping[str, str]
    variables: list[tuple[str, np.ndarray]]


def left_out(
    load: Callable[[], ModuleType], function: str, *, draws: bool, keeps_state: bool, depth: int = 1
) -> str | None:
    """Return the sentence that says which effects of a Python loop over a few elements a strategy does not have.

    ``load`` makes the module of the strategy's script anew, with its state as it is at first; ``function`` is the name
    of the element function there. ``draws``: it draws random numbers, so that only whole numbers in variables can be
    compared. ``keeps_state``: its results change from call to call, and are compared too, unless they are random.
    """
    import tensorflow as tf

    def loop(module: ModuleType, elems: Any) -> Any:
        def one(index: int) -> Any:
            return getattr(module, function)(tf.nest.map_structure(lambda leaf: leaf[index], elems))

        return [one(index) for index in range(_length(elems))]

    # What differs from loop to loop, as times of day do, is no strategy's fault.
    right, again = _seen(load, loop), _seen(load, loop)
    got = _seen(load, lambda module, elems: module.strategy(elems))
    faults = _counts(got, right) + _python(got, right, again) + _variables(got, right, again, draws, depth)
    if keeps_state and not draws and not faults:
        faults = _results(got, right, again, depth)
    return f"the strategy does not do what a Python loop does: {'; '.join(faults)}" if faults else None


def _length(elems: Any) -> int:
    import tensorflow as tf

    length: int = tf.nest.flatten(elems)[0].shape[0]
    return length


# --- what differs ----------------------------------------------------------------------------------------------------


def _counts(got: _Seen, right: _Seen) -> list[str]:
    one_call = f"for {got.elements} elements"
    faults = []
    if got.lines < right.lines:
        faults.append(f"{one_call} it prints {_lines(got.lines)} instead of {right.lines}")
    if got.calls < right.calls:
        faults.append(f"{one_call} it calls into Python {_times(got.calls)} instead of {_times(right.calls)}")
    return faults


def _python(got: _Seen, right: _Seen, again: _Seen) -> list[str]:
    return [
        _left(name, got, got.python.get(name, "nothing"), text)
        for name, text in right.python.items()
        if text == again.python.get(name) != got.python.get(name)
    ]


def _variables(got: _Seen, right: _Seen, again: _Seen, draws: bool, depth: int) -> list[str]:
    return [
        _left(name, got, str(ours), str(array))
        for (name, array), (_, other), (_, ours) in zip(right.variables, again.variables, got.variables, strict=False)
        if not (draws and array.dtype.kind not in "iub")
        and correctness.check(other, array)[0].ok
        and not correctness.check(ours, array, depth=2 * got.elements * depth)[0].ok
    ]


def _results(got: _Seen, right: _Seen, again: _Seen, depth: int) -> list[str]:
    """Results of a batch against those of elements, which are not compared where their shapes differ."""
    import tensorflow as tf

    def stacked(*leaves: Any) -> Any:
        arrays = [array for leaf in leaves if (array := correctness.as_array(leaf)) is not None]
        return np.stack(arrays)  # of ragged tensors there are none

    try:
        wanted, other = (tf.nest.map_structure(stacked, *seen.outputs) for seen in (right, again))
    except ValueError:
        return []
    _, sentence = correctness.check(got.outputs, wanted, depth=depth)
    is_same = correctness.check(other, wanted)[0].ok
    return [f"the function keeps state, and {sentence}"] if sentence and is_same else []


def _left(name: str, got: _Seen, text: str, right: str) -> str:
    is_short = len(text) <= _MOST_SHOWN and len(right) <= _MOST_SHOWN
    left = f"{text} in {name} instead of {right}" if is_short else f"something else in {name}"
    return f"two calls with {got.elements} elements leave {left}"


def _lines(number: int) -> str:
    return f"{number} line{'' if number == 1 else 's'}" if number else "nothing"


def _times(number: int) -> str:
    return {0: "not at all", 1: "once"}.get(number, f"{number} times")


# --- what is seen ----------------------------------------------------------------------------------------------------


def _seen(load: Callable[[], ModuleType], run: Callable[[ModuleType, Any], Any]) -> _Seen:
    import tensorflow as tf

    with state.variables_made() as made, _calls_into_python() as calls, _printed() as lines:
        module = load()
        elems = tf.nest.map_structure(lambda leaf: leaf[:_MOST_ELEMENTS], module.elems)
        outputs = run(module, elems)
        before = len(lines()), len(calls)
        run(module, elems)
        after = len(lines()), len(calls)
    return _Seen(
        elements=_length(elems),
        outputs=outputs,
        lines=after[0] - before[0],
        calls=after[1] - before[1],
        python=state.of_python(module),
        variables=state.of_tensorflow(module, made),
    )


@contextlib.contextmanager
def _calls_into_python() -> Iterator[list[None]]:
    """Gather an item for each call of what is given to `tf.py_function` and the like meanwhile."""
    import tensorflow as tf

    calls: list[None] = []
    originals = {name: getattr(tf, name) for name in ("py_function", "numpy_function")}

    def counting(original: Any) -> Any:
        def made(func: Any, *args: Any, **kwargs: Any) -> Any:
            def counted(*values: Any) -> Any:
                calls.append(None)
                return func(*values)

            return original(counted, *args, **kwargs)

        return made

    for name, original in originals.items():
        setattr(tf, name, counting(original))
    try:
        yield calls
    finally:
        for name, original in originals.items():
            setattr(tf, name, original)


@contextlib.contextmanager
def _printed() -> Iterator[Callable[[], list[str]]]:
    """Take what is printed meanwhile, by Python or by TensorFlow; the lines so far."""
    logger = logging.getLogger("tensorflow")
    with tempfile.TemporaryFile() as file:

        def lines() -> list[str]:
            sys.stdout.flush()
            sys.stderr.flush()
            text = os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")
            return [line for line in text.splitlines() if not _LOG.match(line)]

        lines()
        kept = [os.dup(1), os.dup(2)]
        disabled, logger.disabled = logger.disabled, True
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            yield lines
        finally:
            lines()
            logger.disabled = disabled
            for number, one in enumerate(kept, 1):
                os.dup2(one, number)
                os.close(one)
