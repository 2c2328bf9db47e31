"""A subject: one process that holds one strategy of one case, ready to be called.

It gets a `Spec` and does the one thing that its role names. It runs the very script that is shown to users: the script
is executed as a module, which leaves ``elems`` and ``strategy`` behind. What it has to say goes out as lines:

``{"event": "stage", "stage"}``, ``{"event": "ready", "runtime_s"}``, ``{"event": "first_call", "seconds"}``,
``{"event": "settled", "seconds", "calls"}``, ``{"event": "other_values", "seconds"}``,
``{"event": "sample", "seconds", "busy_cores"}``,
``{"event": "checked", …}``,
``{"event": "memory", …}``, ``{"event": "process_peak", "bytes"}``, ``{"event": "rates", …}``,
``{"event": "room", "bytes"}``, ``{"event": "why", "why"}``, ``{"event": "saved"}`` and
``{"event": "error", "stage", "outcome", "type", "message", "detail"}``.
A timing subject is told what to do: ``{"op": "first_call"}``, ``{"op": "settle"}``, ``{"op": "other_values"}``,
``{"op": "sample", "calls", "warm_s"}``, ``{"op": "stop"}``. In a fresh interpreter the
spec is the first line on stdin.
"""

import contextlib
import functools
import gc
import linecache
import logging
import os
import pickle
import re
import sys
import tempfile
import time
import traceback
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from measure.machine import allocator, gpu
from measure.model.run import Struct
from measure.subject import correctness, memory, probes
from measure.subject.lifeline import die_with_parent
from measure.subject.messages import Channel
from measure.subject.timing import Clock
from measure.subject.traced import traced

Role = Literal["reference", "memory", "timing", "process_peak", "probes", "room", "why", "devices"]

# Orders of the elements that a strategy is called with beside the one that is timed: one call may be disturbed.
_ORDERS = 3
# The longest text of an error that is kept: TensorFlow's messages can hold whole graphs.
_MOST_DETAIL = 20_000


class Spec(Struct, frozen=True, kw_only=True):
    """What a subject is to be. ``case_dir`` holds what all subjects of a case read: the reference and the expected
    structure of the whole output. ``mode`` selects which parts of the runtime are started before the first call is
    timed. ``artifacts`` is the folder for what a why subject leaves beside its figures."""

    role: Role
    script: str = ""
    name: str = ""
    mode: str = "eager"
    device: str = "CPU:0"
    case_dir: str = ""
    artifacts: str = ""
    depth: int = 1
    tolerance: dict[str, Any] | None = None
    memory_limit_mib: int | None = None
    memory_method: Literal["events", "events_with_numpy", "allocator", "tracemalloc"] = "events"
    captured_bytes: int = 0
    input_bytes: int = 0
    work: probes.Work | None = None


class _Sender:
    """Sends lines from the process that it was made in: a fork made by a strategy must not speak for the subject."""

    def __init__(self, channel: Channel) -> None:
        self._channel, self._pid = channel, os.getpid()
        self.stage = "start"

    def send(self, event: str, **fields: Any) -> None:
        if os.getpid() != self._pid:
            os._exit(0)
        self._channel.send({"event": event, **fields})

    def enter(self, stage: str) -> None:
        self.stage = stage
        self.send("stage", stage=stage)


def serve(spec: Spec, channel: Channel) -> None:
    """Do what the spec says; errors of the strategy become an event. Returns when done or when told to stop."""
    sender = _Sender(channel)
    if spec.case_dir:
        # What a killed subject leaves behind is removed with the case.
        tempfile.tempdir = spec.case_dir
    try:
        if spec.device.startswith("GPU"):
            memory.prepare_gpu()
        _ROLES[spec.role](spec, sender, channel)
    except BaseException as error:  # SystemExit and KeyboardInterrupt of a strategy are outcomes too
        sender.send("error", stage=sender.stage, **describe(error))


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


def _reference(spec: Spec, sender: _Sender, channel: Channel) -> None:
    sender.enter("reference")
    module = load(spec.script, spec.name)
    folder = Path(spec.case_dir)
    leaves: list[str] = []

    def save(leaf: Any) -> str:
        path = folder / f"reference_{len(leaves)}.npy"
        np.save(path, np.asarray(leaf))
        leaves.append(path.name)
        return path.name

    nest = correctness.map_nest(save, module.reference_output)
    (folder / "reference.pickle").write_bytes(pickle.dumps(nest))
    sender.send("saved")


def _memory(spec: Spec, sender: _Sender, channel: Channel) -> None:
    memory.prepare_events(spec.memory_limit_mib)
    if spec.device.startswith("GPU") and spec.memory_limit_mib is not None:
        memory.limit_gpu(_index(spec.device), spec.memory_limit_mib)
    sender.enter("memory")
    with _said() as said:
        module = load(spec.script, spec.name)
        synchronise = _synchronise(spec.device)
        outputs = module.strategy(module.elems)
        synchronise()
        check, sentence = correctness.check(
            outputs,
            _read_reference(spec.case_dir),
            expected=pickle.loads((Path(spec.case_dir) / "expected.pickle").read_bytes()),
            batch=None,
            depth=spec.depth,
            tolerance=spec.tolerance,
        )
        sender.send("checked", correctness=msgspec.to_builtins(check), sentence=sentence)
        del outputs
        gc.collect()

        def call() -> Any:
            outputs = module.strategy(module.elems)
            synchronise()
            return outputs

        with traced() as traces:
            if spec.memory_method == "tracemalloc":
                result = memory.measure_tracemalloc(call)
            elif spec.memory_method == "allocator":
                result = memory.measure_allocator(call, device=_local(spec.device))
            else:
                with_numpy = spec.memory_method == "events_with_numpy"
                result = memory.measure_events(call, device=_local(spec.device), with_numpy=with_numpy)
    result = msgspec.structs.replace(result, input_bytes=spec.input_bytes, captured_bytes=spec.captured_bytes)
    retraces = len(traces.names) if spec.mode == "eager" else 0
    sender.send("memory", memory=msgspec.to_builtins(result), said=said, retraces=retraces)


def _process_peak(spec: Spec, sender: _Sender, channel: Channel) -> None:
    possible = memory.prepare_process_peak()
    sender.enter("process_peak")
    peak_bytes = None
    if possible:
        module = load(spec.script, spec.name)
        synchronise = _synchronise(spec.device)

        def call() -> Any:
            outputs = module.strategy(module.elems)
            synchronise()
            return outputs

        call()
        peak_bytes = memory.measure_process_peak(call)
    sender.send("process_peak", bytes=peak_bytes)


def _why(spec: Spec, sender: _Sender, channel: Channel) -> None:
    from measure.model import why
    from measure.subject import explain as why_subject

    sender.enter("why")
    with _said() as said:
        module = load(spec.script, spec.name)
        found = why_subject.explain(
            module,
            spec.mode,
            spec.name,
            Path(spec.artifacts),
            _synchronise(spec.device),
            on_gpu=spec.device.startswith("GPU"),
        )
    sender.send("why", why=why.written(msgspec.structs.replace(found, fallbacks=why.fallbacks(said))))


def _timing(spec: Spec, sender: _Sender, channel: Channel) -> None:
    sender.enter("first_call")
    module = load(spec.script, spec.name)
    synchronise = _synchronise(spec.device)
    clock = Clock(module.strategy, module.elems, synchronise)
    sender.send("ready", runtime_s=_start_runtime(spec.mode, spec.name))
    while (command := channel.receive()) is not None and command["op"] != "stop":
        if command["op"] == "first_call":
            sender.send("first_call", seconds=clock.call())
        elif command["op"] == "settle":
            seconds, calls = clock.settle()
            sender.stage = "sampling"
            sender.send("settled", seconds=seconds, calls=calls)
        elif command["op"] == "other_values":
            sender.send("other_values", seconds=_with_other_values(module, synchronise))
        elif command["op"] == "sample":
            if command["warm_s"]:
                clock.warm(command["warm_s"])
            calls, cpu_s = command["calls"], time.process_time()
            seconds = clock.sample(calls)
            cpu_s = time.process_time() - cpu_s
            sender.send("sample", seconds=seconds, busy_cores=cpu_s / (calls * max(seconds, 1e-9)))


def _probes(spec: Spec, sender: _Sender, channel: Channel) -> None:
    # Its pool gives a buffer back at once: fresh pages of the system's would cost more than what is written to them.
    memory.prepare_events()
    sender.enter("probes")
    load(spec.script, "settings")
    assert spec.work is not None
    rates = probes.measure(spec.work, _local(spec.device), _synchronise(spec.device))
    sender.send("rates", rates=msgspec.to_builtins(rates))


def _room(spec: Spec, sender: _Sender, channel: Channel) -> None:
    """What a GPU has left for tensors: TensorFlow asks the driver when it opens the device."""
    sender.send("room", bytes=memory.gpu_room(_index(spec.device)))


def _devices(spec: Spec, sender: _Sender, channel: Channel) -> None:
    """Lists devices in a process of its own: asking initialises drivers, after which a fork would not be safe."""
    import tensorflow as tf
    from tensorflow.python.util import _pywrap_util_port

    names, gpus = [], []
    for device in tf.config.list_physical_devices():
        kind, index = device.name.rsplit(":", 2)[-2:]
        if kind in ("CPU", "GPU"):
            names.append(f"{kind}:{index}")
        if kind == "GPU":
            found = tf.config.experimental.get_device_details(device)
            capability = ".".join(map(str, found.get("compute_capability") or ()))
            name, memory_bytes = found.get("device_name"), gpu.memory_bytes(int(index))
            gpus.append({"name": name, "compute_capability": capability, "memory_bytes": memory_bytes})
    build = tf.sysconfig.get_build_info()
    # Whether it is on depends on the build, the processor and a variable.
    onednn = bool(_pywrap_util_port.IsMklEnabled())
    sender.send(
        "devices",
        names=names,
        gpus=gpus,
        gpu_driver=gpu.driver() if gpus else None,
        cuda=build.get("cuda_version"),
        cudnn=build.get("cudnn_version"),
        onednn=onednn,
        # Of this process, as of all subjects: the variables of the server need not be theirs.
        openblas_threads=allocator.openblas_threads(),
        tensorflow_allocator=allocator.of_processor(os.environ, onednn),
        gpu_allocator=allocator.of_gpus(os.environ) if gpus else None,
        # As `serve` sets it for whatever runs on a GPU.
        gpu_memory_growth=True if gpus else None,
    )


_ROLES: dict[str, Callable[[Spec, _Sender, Channel], None]] = {
    "reference": _reference,
    "memory": _memory,
    "process_peak": _process_peak,
    "timing": _timing,
    "probes": _probes,
    "room": _room,
    "why": _why,
    "devices": _devices,
}


# --- parts -----------------------------------------------------------------------------------------------------------


def _read_reference(case_dir: str) -> Any:
    folder = Path(case_dir)
    nest = pickle.loads((folder / "reference.pickle").read_bytes())
    return correctness.map_nest(lambda name: np.load(folder / name, mmap_mode="r"), nest)


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


def _with_other_values(module: types.ModuleType, synchronise: Callable[[], None]) -> float | None:
    """Seconds of the quickest of a few calls, each with the elements in another order; None where there is none."""
    import tensorflow as tf

    def moved(shift: int, leaf: Any) -> Any:
        join = np.concatenate if isinstance(leaf, np.ndarray) else tf.concat
        return join([leaf[shift:], leaf[:shift]], axis=0)

    batch = tf.nest.flatten(module.elems)[0].shape[0]
    least_s = None
    for shift in range(1, min(_ORDERS + 1, batch)):
        elems = tf.nest.map_structure(functools.partial(moved, shift), module.elems)
        try:
            seconds = Clock(module.strategy, elems, synchronise).call()
        except Exception:  # it was not asked to take these
            return None
        least_s = seconds if least_s is None else min(least_s, seconds)
    return least_s


def compiles_element(slug: str) -> bool:
    """Whether a strategy's own option has its element function compiled with XLA, whatever its mode."""
    return "jit_compile=true" in slug.partition("?")[2].split("&")


def _start_runtime(mode: str, slug: str) -> float:
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
def _said() -> Any:
    """Collects the warnings that a user of the strategy would see, once each."""
    said: list[str] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage().strip()
            if text and text not in said:
                said.append(text[:2_000])

    logger = logging.getLogger("tensorflow")
    handler = Collect(level=logging.WARNING)
    logger.addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            yield said
        said += [text for text in dict.fromkeys(str(item.message) for item in caught) if text not in said]
    finally:
        logger.removeHandler(handler)


# --- errors ----------------------------------------------------------------------------------------------------------

_NODE = re.compile(r"\{\{[^}]*\}\}\s*")
_CAUSE = re.compile(r"^\s*\w+(Error|Exception): ")
_OP_SUFFIX = re.compile(r"\s*\[Op:[^\]]*\]|\s*name:\s*$")
_NOISE = re.compile(
    r"^(Graph execution error|<stack traces unavailable>|"
    r"in user code:|File |Traceback|Detected at node|Stack trace for op|\s|\d+ root error|\(\d+\) |Hint:)"
)


def describe(error: BaseException) -> dict[str, str]:
    """Outcome, type, the line that a person can act on, and the full text of an error."""
    detail = "".join(traceback.format_exception(error)).strip()
    if len(detail) > _MOST_DETAIL:
        # Cut at the end of a line, where there is one: the rest of a path could not be told from other words.
        first, last = detail[: _MOST_DETAIL // 2], detail[-_MOST_DETAIL // 2 :]
        detail = "\n".join((first, "[…]", last.partition("\n")[2] or last))
    name = type(error).__name__
    text = str(getattr(error, "message", None) or error)
    if isinstance(error, SystemExit):
        text = f"the strategy asked Python to exit with status {text or 0}"
    out_of_memory = isinstance(error, MemoryError) or name == "ResourceExhaustedError" or "RESOURCE_EXHAUSTED" in text
    return {
        "outcome": "out_of_memory" if out_of_memory else "failed",
        "type": name,
        "message": shorten(text).removeprefix(f"{name}: ") or name,
        "detail": detail,
    }


def refused(reason: str) -> dict[str, Any]:
    """The error event for a subject that could not be started."""
    return {
        "event": "error",
        "stage": "start",
        "outcome": "failed",
        "type": "NotStarted",
        "message": f"the process could not be started: {reason}",
        "detail": "",
    }


def disturbed(reason: str) -> dict[str, Any]:
    """What is said in place of a subject whose strategy has written into its channel: nothing there can be trusted."""
    message = "the strategy wrote into the channel between its process and Mapbench, so the process was ended"
    return {"event": "error", "outcome": "failed", "type": "ProtocolError", "message": message, "detail": reason}


def shorten(text: str) -> str:
    """The line of one of TensorFlow's messages that says what was wrong."""
    lines = [_OP_SUFFIX.sub("", _NODE.sub("", line)) for line in text.splitlines()]
    if text.startswith("in user code:"):
        # Raised while tracing: the cause stands after the traceback, and may itself have several lines.
        causes = [line for line in lines if _CAUSE.match(line)]
        if causes:
            return causes[-1].strip()[:400]
    candidates = [line.strip() for line in lines if line.strip() and not _NOISE.match(line)]
    if not candidates:
        # Errors raised while tracing are wrapped («in user code: …»): the cause is the last line.
        stripped = [line.strip() for line in lines if line.strip()]
        candidates = stripped[-1:]
    return candidates[0][:400] if candidates else ""


def main() -> None:
    """A subject in a fresh interpreter: lines on stdin and stdout, everything else that is printed on stderr."""
    # Who started this process: by now its parent may have ended, and another one have taken its place.
    die_with_parent(int(sys.argv[1]) if len(sys.argv) > 1 else os.getppid())
    channel = Channel(os.dup(0), os.dup(1))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    spec = channel.receive()
    if spec is not None:
        serve(msgspec.convert(spec, Spec), channel)
    sys.stdout.flush()
    os._exit(0)
