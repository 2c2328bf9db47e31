"""The roles of a subject: what each does with its strategy, and what it says of that.

The order of things counts: what is set for TensorFlow's runtime is set before the script runs its first op.
"""

import contextlib
import gc
import linecache
import logging
import math
import os
import pickle
import re
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from measure.machine import allocator
from measure.model.why import MOST_ROWS
from measure.subject import correctness, counting, derive, explain, memory, messages, probes, reference
from measure.subject.limits import Refused
from measure.subject.messages import Channel, Said, Spec
from measure.subject.timing import Clock
from measure.subject.tracing import NOTHING, anew, compiles_element, traced

# For how long a strategy is called for a rough figure of its latency; one whose first call is long is not, and is not
# called with new values either.
_ROUGH_S, _LONG_FIRST_CALL_S = 0.02, 2.0
# Where a call takes longer, calls with other values would take more time than they are worth.
_LONG_CALL_S = 0.1
_EXPECTED = "expected.pickle"
# The numbers of the elements whose results are compared, where these are not all.
_COMPARED = "compared.npy"
_LONGEST_WARNING = 2_000
# How TensorFlow warns of an op that `tf.vectorized_map` cannot vectorise. Source: ``python/ops/parallel_for/pfor.py``.
_FALLBACK = re.compile(r"Using a while_loop for converting \w+|\w+ uses a while_loop\b")


class Sender:
    """Sends messages from the process that it was made in: a fork made by a strategy must not speak for the subject."""

    def __init__(self, channel: Channel) -> None:
        self._channel, self._pid = channel, os.getpid()

    def send(self, message: Said) -> None:
        if os.getpid() != self._pid:
            os._exit(0)
        self._channel.send(message)


def load(script: str, name: str) -> types.ModuleType:
    """The module that results from running ``script``; its text is found by `inspect`, which AutoGraph relies on.

    It has no ``__file__``: AutoGraph would look that file up again, and forget the text where there is none.
    """
    module = types.ModuleType("mapbench_strategy")
    filename = f"<{name}>"
    linecache.cache[filename] = (len(script), None, script.splitlines(keepends=True), filename)
    sys.modules[module.__name__] = module
    exec(compile(script, filename, "exec"), module.__dict__)
    return module


# --- roles -----------------------------------------------------------------------------------------------------------


def _reference(spec: Spec, sender: Sender, channel: Channel) -> None:
    module = load(spec.script, spec.name)
    reference.save(Path(spec.case_dir), module.reference_output)
    if hasattr(module, "compared"):
        np.save(Path(spec.case_dir) / _COMPARED, module.compared)
    sender.send(messages.Saved())


def _memory(spec: Spec, sender: Sender, channel: Channel) -> None:
    memory.prepare_events(spec.memory_limit_mib)
    if spec.device.startswith("GPU") and spec.memory_limit_mib is not None:
        memory.limit_gpu(_index(spec.device), spec.memory_limit_mib)
    with warnings_of_tensorflow() as warned, traced() as in_all:
        call, elems = _prepared(spec)
        begun_s = time.perf_counter()
        outputs = call()
        first_call_s = time.perf_counter() - begun_s
        check, sentence = correctness.check(
            outputs,
            reference.read(Path(spec.case_dir)),
            expected=pickle.loads((Path(spec.case_dir) / _EXPECTED).read_bytes()),
            batch=None,
            depth=spec.depth,
            tolerance=spec.tolerance,
            shapes_only=spec.shapes_only,
            compared=np.load(compared) if (compared := Path(spec.case_dir) / _COMPARED).exists() else None,
        )
        sender.send(messages.Checked(check, sentence))
        del outputs
        gc.collect()
        with traced() as traces:
            if spec.memory_method == "tracemalloc":
                usage = memory.measure_tracemalloc(call)
            elif spec.memory_method == "allocator":
                usage = memory.measure_allocator(call, device=_local(spec.device))
            else:
                with_numpy = spec.memory_method == "events_with_numpy"
                usage = memory.measure_events(call, device=_local(spec.device), with_numpy=with_numpy)
    usage = replace(usage, input_bytes=spec.input_bytes, captured_bytes=spec.captured_bytes)
    retraces = len(traces.names) if spec.mode == "eager" else 0
    sender.send(messages.Measured(usage, warned, in_all.fallbacks, retraces))
    # Only now: of many calls TensorFlow warns that they trace anew, and what is measured is safe if one of them fails.
    rough_s = _rough_s(call) if first_call_s < _LONG_FIRST_CALL_S else None
    sender.send(messages.Rough(rough_s))
    compiles = spec.mode == "xla" or compiles_element(spec.name)
    is_long = rough_s is None or rough_s > _LONG_CALL_S
    sender.send(NOTHING if is_long or traces.names else anew(call, elems, compiles=compiles))


def _process_peak(spec: Spec, sender: Sender, channel: Channel) -> None:
    peak_bytes = None
    if memory.prepare_process_peak():
        call, _ = _prepared(spec)
        call()
        peak_bytes = memory.measure_process_peak(call)
    sender.send(messages.ProcessPeak(peak_bytes))


def _why(spec: Spec, sender: Sender, channel: Channel) -> None:
    with traced() as in_all:
        module = load(spec.script, spec.name)
        on_gpu = spec.device.startswith("GPU")
        synchronise = _synchronise(spec.device)
        why = explain.explain(module, spec.mode, spec.name, Path(spec.artifacts), synchronise, on_gpu=on_gpu)
    sender.send(messages.Reasons(replace(why, fallbacks=in_all.fallbacks[:MOST_ROWS])))


def _timing(spec: Spec, sender: Sender, channel: Channel) -> None:
    module = load(spec.script, spec.name)
    synchronise = _synchronise(spec.device)
    clock = Clock(module.strategy, module.elems, synchronise)
    sender.send(messages.Ready(start_runtime(spec.mode, spec.name)))
    command: messages.Command | None
    while (command := channel.receive(messages.Command)) is not None:
        match command:
            case messages.CallFirst():
                sender.send(messages.FirstCall(clock.call()))
            case messages.TakeTurn():
                sender.send(clock.turn())
            case messages.Stop():
                return


def _probes(spec: Spec, sender: Sender, channel: Channel) -> None:
    # Its pool gives a buffer back at once: fresh pages of the system's would cost more than what is written to them.
    memory.prepare_events()
    module = load(spec.script, "counted")
    assert spec.work is not None
    _, counted = counting.count(module.strategy, module.elems)
    work = counted.of_case(spec.work, spec.times)
    sender.send(messages.Probed(probes.measure(work, _local(spec.device), _synchronise(spec.device)), work))


def _room(spec: Spec, sender: Sender, channel: Channel) -> None:
    """Tell what a GPU has left for tensors: TensorFlow asks the driver when it opens the device."""
    sender.send(messages.Room(memory.gpu_room(_index(spec.device))))


def _devices(spec: Spec, sender: Sender, channel: Channel) -> None:
    """List the devices, in a process of its own: asking initialises drivers, after which a fork would not be safe."""
    import tensorflow as tf
    from tensorflow.python.util import _pywrap_util_port

    names, gpus = [], []
    for device in tf.config.list_physical_devices():
        kind, index = device.name.rsplit(":", 2)[-2:]
        if kind in ("CPU", "GPU"):
            names.append(f"{kind}:{index}")
        if kind == "GPU":
            details = tf.config.experimental.get_device_details(device)
            capability = ".".join(map(str, details.get("compute_capability") or ()))
            gpus.append(messages.Gpu(name=details.get("device_name"), compute_capability=capability))
    build = tf.sysconfig.get_build_info()
    # On or off by the build, the processor and a variable.
    onednn = bool(_pywrap_util_port.IsMklEnabled())
    sender.send(
        messages.Devices(
            names=names,
            gpus=gpus,
            cuda=build.get("cuda_version"),
            cudnn=build.get("cudnn_version"),
            onednn=onednn,
            # Of this process, as of all subjects: the variables of the server need not be theirs.
            tensorflow_allocator=allocator.of_processor(os.environ, onednn),
        )
    )


def _derive(spec: Spec, sender: Sender, channel: Channel) -> None:
    """Derive what is known of a person's function; what it does wrong is a sentence."""

    def refuse(sentence: str) -> None:
        sender.send(messages.Failed("failed", Refused.__name__, sentence))

    def give_up(sentence: str) -> None:
        refuse(sentence)
        os._exit(0)

    try:
        sender.send(messages.Derived(derive.derive(spec, give_up)))
    except Refused as refused:
        refuse(str(refused))


ROLES: dict[messages.Role, Callable[[Spec, Sender, Channel], None]] = {
    "reference": _reference,
    "memory": _memory,
    "process_peak": _process_peak,
    "timing": _timing,
    "probes": _probes,
    "room": _room,
    "why": _why,
    "devices": _devices,
    "derive": _derive,
}


# --- parts -----------------------------------------------------------------------------------------------------------


def _prepared(spec: Spec) -> tuple[Callable[..., Any], Any]:
    """A call of the strategy that ends with the device's work and returns the outputs, and the elements that it is
    given where it is given no others; loads the script."""
    module = load(spec.script, spec.name)
    synchronise = _synchronise(spec.device)

    def call(elems: Any = module.elems) -> Any:
        outputs = module.strategy(elems)
        synchronise()
        return outputs

    return call, module.elems


def _rough_s(call: Callable[[], Any]) -> float:
    """Seconds of the quickest of the calls that fit into a while."""
    least_s, end = math.inf, time.perf_counter() + _ROUGH_S
    while (begun_s := time.perf_counter()) < end:
        call()
        least_s = min(least_s, time.perf_counter() - begun_s)
    return least_s


def _local(device: str) -> str:
    """TensorFlow's name for the device in a process that sees only this one: the script hides the others."""
    return "GPU:0" if device.startswith("GPU") else device


def _index(device: str) -> int:
    return int(device.rpartition(":")[2])


def _synchronise(device: str) -> Callable[[], None]:
    if device.startswith("GPU"):
        import tensorflow as tf

        return tf.test.experimental.sync_devices
    return lambda: None


def start_runtime(mode: str, slug: str) -> float:
    """Start what TensorFlow starts once per process (contexts, thread pools, XLA with LLVM), so that a strategy's
    first call is not charged for it; seconds that it took. In any mode a strategy may call functions of its own, as
    `tf.vectorized_map` does, and these may be compiled with XLA."""
    import tensorflow as tf

    start = time.perf_counter()
    one = tf.constant(1.0)
    tf.add(one, one)

    def increment(value: Any) -> Any:
        return value + 1.0

    tf.function(increment, jit_compile=mode == "xla" or compiles_element(slug), autograph=False)(one)
    return time.perf_counter() - start


@contextlib.contextmanager
def warnings_of_tensorflow() -> Iterator[list[str]]:
    """Collect the warnings that a user of the strategy would see, once each; those of fall-backs are left out, for
    graphs tell of more of these."""
    collected: list[str] = []

    def collect(text: str) -> None:
        text = text.strip()[:_LONGEST_WARNING]
        if text and text not in collected and not _FALLBACK.search(text):
            collected.append(text)

    logger, handler = logging.getLogger("tensorflow"), logging.Handler(logging.WARNING)
    handler.emit = lambda record: collect(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            yield collected
        for warning in caught:
            collect(str(warning.message))
    finally:
        logger.removeHandler(handler)
