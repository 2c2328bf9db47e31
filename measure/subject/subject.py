"""A subject: one process that holds one strategy of one case, ready to be called, and does the one thing that the role
in its `Spec` names.

It runs the very script that is shown to users: the script is executed as a module, which leaves ``elems`` and
``strategy`` behind. What it can be told and what it says is in `measure.subject.messages`. The host forks it, or it
starts in a fresh interpreter. The order of things counts: what is set for TensorFlow's runtime is set before the script
runs its first op.
"""

import gc
import linecache
import os
import pickle
import sys
import tempfile
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from measure.machine import allocator
from measure.run.why import MOST_ROWS
from measure.subject import correctness, counting, derive, explain, memory, messages, probes
from measure.subject.errors import describe
from measure.subject.lifeline import SUBJECT_OOM_SCORE, die_with_parent, offer_memory
from measure.subject.messages import Channel, Said, Spec
from measure.subject.timing import Clock
from measure.subject.tracing import NOTHING, anew, compiles_element, traced

# For how long a strategy is called for a rough figure of its latency; one whose first call is long is not, and is not
# called with new values either.
_ROUGH_S, _LONG_FIRST_CALL_S = 0.02, 2.0
# Where a call takes longer, calls with other values would take more time than they are worth.
_LONG_CALL_S = 0.1
_EXPECTED = "expected.pickle"


def main() -> None:
    """A subject in a fresh interpreter, whose channel is stdin."""
    # Who started this process: by now its parent may have ended, and another one have taken its place.
    die_with_parent(int(sys.argv[1]) if len(sys.argv) > 1 else os.getppid())
    offer_memory(SUBJECT_OOM_SCORE)
    channel = Channel(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if (spec := channel.receive(Spec)) is not None:
        serve(spec, channel)
    sys.stdout.flush()
    os._exit(0)


def serve(spec: Spec, channel: Channel) -> None:
    """Do what the spec says; errors of the strategy become a message. Returns when done or when told to stop."""
    process = os.getpid()

    def send(message: Said) -> None:
        if os.getpid() != process:  # a fork made by a strategy must not speak for the subject
            os._exit(0)
        channel.send(message)

    if spec.case_dir:
        # What a killed subject leaves behind is removed with the case.
        tempfile.tempdir = spec.case_dir
    try:
        if spec.device.startswith("GPU"):
            memory.prepare_gpu()
        if spec.role == "timing":
            _timing(spec, send, channel)
        else:
            _ROLES[spec.role](spec, send)
    except BaseException as error:  # SystemExit and KeyboardInterrupt of a strategy are outcomes too
        send(describe(error))


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

Send = Callable[[Said], None]


def _reference(spec: Spec, send: Send) -> None:
    module = load(spec.script, spec.name)
    correctness.save_reference(Path(spec.case_dir), module.reference_output, getattr(module, "compared", None))
    send(messages.Saved())


def _memory(spec: Spec, send: Send) -> None:
    memory.prepare_events(spec.memory_limit_mib)
    if spec.device.startswith("GPU") and spec.memory_limit_mib is not None:
        memory.limit_gpu(_index(spec.device), spec.memory_limit_mib)
    with traced() as in_all:
        call, elems = _prepared(spec)
        begun_s = time.perf_counter()
        outputs = call()
        first_call_s = time.perf_counter() - begun_s
        right, compared = correctness.read_reference(Path(spec.case_dir))
        check, sentence = correctness.check(
            outputs,
            right,
            expected=pickle.loads((Path(spec.case_dir) / _EXPECTED).read_bytes()),
            depth=spec.depth,
            shapes_only=spec.shapes_only,
            compared=compared,
        )
        send(messages.Checked(check, sentence))
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
    retraces = traces.functions if spec.mode == "eager" else 0
    send(messages.Measured(usage, in_all.fallbacks, retraces))
    # Only now: what is measured is safe if one of these calls fails.
    clock = Clock(call, elems, lambda: None)
    rough_s = clock.come_to_pace(_ROUGH_S) if first_call_s < _LONG_FIRST_CALL_S else None
    send(messages.Rough(rough_s))
    is_long = rough_s is None or rough_s > _LONG_CALL_S
    send(NOTHING if is_long or traces.functions else anew(call, elems))


def _process_peak(spec: Spec, send: Send) -> None:
    peak_bytes = None
    if memory.prepare_process_peak():
        call, _ = _prepared(spec)
        call()
        peak_bytes = memory.measure_process_peak(call)
    send(messages.ProcessPeak(peak_bytes))


def _why(spec: Spec, send: Send) -> None:
    on_gpu, synchronise = spec.device.startswith("GPU"), _synchronise(spec.device)
    with traced() as in_all:
        module = load(spec.script, spec.name)
        why = explain.explain(module, spec.mode, spec.name, Path(spec.artifacts), synchronise, on_gpu=on_gpu)
    send(messages.Reasons(replace(why, fallbacks=in_all.fallbacks[:MOST_ROWS])))


def _timing(spec: Spec, send: Send, channel: Channel) -> None:
    module = load(spec.script, spec.name)
    clock = Clock(module.strategy, module.elems, _synchronise(spec.device))
    send(messages.Ready(start_runtime(spec.mode, spec.name)))
    command: messages.Command | None
    while (command := channel.receive(messages.Command)) is not None:
        match command:
            case messages.CallFirst():
                send(messages.FirstCall(clock.call()))
            case messages.TakeTurn():
                send(clock.turn())
            case messages.Stop():
                return


def _probes(spec: Spec, send: Send) -> None:
    # Its pool gives a buffer back at once: fresh pages of the system's would cost more than what is written to them.
    memory.prepare_events()
    module = load(spec.script, "counted")
    assert spec.work is not None
    _, counted = counting.count(module.strategy, module.elems)
    # Where the work of an op is not known, none counts.
    flops = 0 if counted.unknown else round(spec.times * counted.flops)
    work = replace(spec.work, flops=flops, unknown=list(counted.unknown))
    send(messages.Probed(probes.measure(work, _local(spec.device), _synchronise(spec.device)), work))


def _room(spec: Spec, send: Send) -> None:
    """Tell what a GPU has left for tensors: TensorFlow asks the driver when it opens the device."""
    send(messages.Room(memory.gpu_room(_index(spec.device))))


def _devices(spec: Spec, send: Send) -> None:
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
    send(
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


def _derive(spec: Spec, send: Send) -> None:
    """Derive what is known of a person's function; what it does wrong is a sentence."""
    send(messages.Derived(derive.derive(spec)))


_ROLES: dict[messages.Role, Callable[[Spec, Send], None]] = {
    "reference": _reference,
    "memory": _memory,
    "process_peak": _process_peak,
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
