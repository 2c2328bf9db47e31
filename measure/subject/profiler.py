"""TensorFlow's profiler, as a process that is not timed has its calls watched by it."""

from pathlib import Path
from typing import Any

# The span in the profiler's file that is a call of the strategy.
CALL = "mapbench call"


def start(folder: Path | str, *, on_gpu: bool = False) -> None:
    """Watch from now on: the host without Python's own calls, and with ``on_gpu`` the kernels of GPUs."""
    import tensorflow as tf

    levels = {"host_tracer_level": 2, "python_tracer_level": 0, "device_tracer_level": int(on_gpu)}
    tf.profiler.experimental.start(str(folder), tf.profiler.experimental.ProfilerOptions(**levels))


def stop() -> None:
    """Write what was seen into the folder."""
    import tensorflow as tf

    tf.profiler.experimental.stop()


def marked() -> Any:
    """A context; what runs in it is a `CALL`."""
    import tensorflow as tf

    return tf.profiler.experimental.Trace(CALL)


def space(folder: Path | str) -> Any:
    """The ``XSpace`` that the profiler has left in its folder. Raises RuntimeError where there is none."""
    from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

    files = sorted(Path(folder).rglob("*.xplane.pb"))
    if not files:
        raise RuntimeError("the profiler wrote no file of events")
    return XSpace.FromString(files[0].read_bytes())
