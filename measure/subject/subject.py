"""A subject: one process that holds one strategy of one case, ready to be called, and does the one thing that the role
in its `Spec` names.

It runs the very script that is shown to users, as a module, which leaves ``elems`` and ``strategy`` behind. The host
forks it, or it starts in a fresh interpreter. What is set for TensorFlow's runtime is set before the script's first op.
"""

import os
import pickle
import sys
import sysconfig
import tempfile
import time
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from measure.machine.environment import tensor_allocator
from measure.run.why import MOST_ROWS
from measure.subject import correctness, counting, derive, explain, memory, messages, probes
from measure.subject.errors import describe
from measure.subject.lifeline import SUBJECT_OOM_SCORE, die_with_parent, offer_memory
from measure.subject.messages import Channel, Spec
from measure.subject.timing import Clock
from measure.subject.tracing import NOTHING, anew, compiles_element, traced

# For how long a strategy is called for a rough figure of its latency; one whose first call is long is not, and is not
# called with new values either.
_ROUGH_S, _LONG_FIRST_CALL_S = 0.02, 2.0
# Where a call takes longer, calls with other values would take more time than they are worth.
_LONG_CALL_S = 0.1


def main() -> None:
    """A subject in a fresh interpreter, whose channel is stdin."""
    die_with_parent(int(sys.argv[1]))
    offer_memory(SUBJECT_OOM_SCORE)
    import_from(sys.argv[2:])
    channel = Channel(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if (spec := channel.receive(Spec)) is not None:
        serve(spec, channel)
    sys.stdout.flush()
    os._exit(0)


def import_from(folders: Sequence[str]) -> None:
    """Have modules of these folders imported before those that are installed, but none in place of Python's own: a file
    may well be called ``profile.py``."""
    standard = [path for path in sys.path if path.startswith(sysconfig.get_path("stdlib")) and "-packages" not in path]
    sys.path[:0] = [*standard, *folders] if folders else []


def serve(spec: Spec, channel: Channel) -> None:
    """Do what the spec says; errors of the strategy become a message. Returns when done or when told to stop."""
    if spec.case_dir:
        # What a killed subject leaves behind is removed with the case.
        tempfile.tempdir = spec.case_dir
    if spec.device.startswith("GPU"):
        # A process takes a GPU's memory as it needs it, not all at once: others live on the same one. Source:
        # ``GPUBFCAllocator::GetAllowGrowthValue``, which asks for the variable by name.
        os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
    try:
        _ROLES[spec.role](spec, channel)
    except BaseException as error:  # SystemExit and KeyboardInterrupt of a strategy are outcomes too
        channel.send(describe(error))


def load(spec: Spec) -> types.ModuleType:
    return derive.execute(spec.script, f"<{spec.name}>", "mapbench_strategy")


# --- roles -----------------------------------------------------------------------------------------------------------


def _reference(spec: Spec, channel: Channel) -> None:
    module = load(spec)
    correctness.save_reference(Path(spec.case_dir), module.reference_output, getattr(module, "compared", None))
    channel.send(messages.Saved())


def _memory(spec: Spec, channel: Channel) -> None:
    memory.prepare_events(spec.memory_limit_mib, spec.device)
    with traced() as in_all:
        module, call = _prepared(spec)
        begun_s = time.perf_counter()
        outputs = call()
        first_call_s = time.perf_counter() - begun_s
        right, compared = correctness.read_reference(Path(spec.case_dir))
        expected = pickle.loads(Path(spec.case_dir, "expected.pickle").read_bytes())
        check, sentence = correctness.check(outputs, right, compared=compared, **expected)
        channel.send(messages.Checked(check, sentence))
        del outputs
        with traced() as traces:
            usage = memory.measure(call, spec.memory_method, _local(spec.device))
    retraces = traces.functions if spec.mode == "eager" else 0
    channel.send(messages.Measured(usage, in_all.fallbacks, retraces))
    # Only now: what is measured is safe if one of these calls fails.
    clock = Clock(call, module.elems, lambda: None)
    rough_s = first_call_s
    if first_call_s < _LONG_FIRST_CALL_S:
        rough_s = clock.come_to_pace(_ROUGH_S)
        channel.send(messages.Rough(rough_s))
    channel.send(NOTHING if rough_s > _LONG_CALL_S or traces.functions else anew(call, module.elems))


def _process_peak(spec: Spec, channel: Channel) -> None:
    memory.prepare_process_peak()
    _, call = _prepared(spec)
    call()
    channel.send(messages.ProcessPeak(memory.measure_process_peak(call)))


def _why(spec: Spec, channel: Channel) -> None:
    with traced() as in_all:
        why = explain.explain(*_prepared(spec), spec)
    channel.send(messages.Reasons(replace(why, fallbacks=in_all.fallbacks[:MOST_ROWS])))


def _timing(spec: Spec, channel: Channel) -> None:
    module = load(spec)
    clock = Clock(module.strategy, module.elems, _synchronise(spec.device))
    channel.send(messages.Ready(start_runtime(spec.mode, spec.name)))
    while (command := channel.receive(messages.Command)) is not None and command.op != "stop":
        is_first = command.op == "first_call"
        channel.send(messages.FirstCall(clock.call()) if is_first else clock.turn())


def _probes(spec: Spec, channel: Channel) -> None:
    # Its pool gives a buffer back at once: fresh pages of the system's would cost more than what is written to them.
    memory.prepare_events()
    module = load(spec)
    assert spec.work is not None
    _, counted = counting.count(module.strategy, module.elems)
    rates = probes.measure(spec.work, _local(spec.device), _synchronise(spec.device))
    channel.send(messages.Probed(rates, counted.flops, counted.unknown))


def _room(spec: Spec, channel: Channel) -> None:
    """Tell what a GPU has left for tensors: TensorFlow asks the driver when it opens the device, and keeps a reserve to
    itself."""
    import tensorflow as tf
    from tensorflow.python.client import device_lib

    options = tf.compat.v1.GPUOptions(visible_device_list=spec.device.removeprefix("GPU:"), allow_growth=True)
    devices = device_lib.list_local_devices(tf.compat.v1.ConfigProto(gpu_options=options))
    rooms = (device.memory_limit for device in devices if device.device_type == "GPU")
    channel.send(messages.Room(next(rooms, None)))


def _devices(spec: Spec, channel: Channel) -> None:
    """List the devices, in a process of its own: asking initialises drivers, after which a fork would not be safe."""
    import tensorflow as tf
    from tensorflow.python.util import _pywrap_util_port

    devices = [device for device in tf.config.list_physical_devices() if device.device_type in ("CPU", "GPU")]
    details = [tf.config.experimental.get_device_details(device) for device in devices if device.device_type == "GPU"]
    gpus = [detail.get("device_name") or "GPU" for detail in details]
    # TensorFlow's builds name the CUDA that they were made with even where there is no GPU.
    build = tf.sysconfig.get_build_info() if gpus else {}
    # On or off by the build, the processor and a variable.
    onednn = bool(_pywrap_util_port.IsMklEnabled())
    channel.send(
        messages.Devices(
            names=[device.name.removeprefix("/physical_device:") for device in devices],
            gpus=gpus,
            cuda=build.get("cuda_version"),
            cudnn=build.get("cudnn_version"),
            onednn=onednn,
            # Of this process, as of all subjects: the variables of the server need not be theirs.
            tensorflow_allocator=tensor_allocator(onednn),
        )
    )


def _derive(spec: Spec, channel: Channel) -> None:
    channel.send(messages.Derived(derive.derive(spec)))


_ROLES = {
    role.__name__.removeprefix("_"): role
    for role in (_reference, _memory, _timing, _process_peak, _probes, _room, _why, _devices, _derive)
}


def _prepared(spec: Spec) -> tuple[types.ModuleType, Callable[..., Any]]:
    """The module of the script, and a call of its strategy, of other elements where these are given, that ends with the
    device's work and returns the outputs."""
    module = load(spec)
    synchronise = _synchronise(spec.device)

    def call(elems: Any = module.elems) -> Any:
        outputs = module.strategy(elems)
        synchronise()
        return outputs

    return module, call


def _local(device: str) -> str:
    """TensorFlow's name for the device in a process that sees only this one: the script hides the others."""
    return "GPU:0" if device.startswith("GPU") else device


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
    tf.function(lambda value: value + 1.0, jit_compile=mode == "xla" or compiles_element(slug), autograph=False)(one)
    return time.perf_counter() - start
