"""TensorFlow's profiler around calls of a strategy, in a process that is not timed, and the events that it leaves.

What it writes is an ``XSpace``: planes (the host, each device) of lines (threads of the host, streams of a device) of
events, which have statistics. Times of events are picoseconds from the start of their line.
"""

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The event that is a call of the strategy.
CALL = "mapbench call"

_PS_PER_NS = 1000


@dataclass(frozen=True)
class Event:
    """``line``: the number of its thread or stream in the whole profile, and ``line_name`` the name of that."""

    plane: str
    line: int
    line_name: str
    name: str
    start_ps: int
    duration_ps: int
    stats: Mapping[str, Any]

    @property
    def end_ps(self) -> int:
        return self.start_ps + self.duration_ps


class Profile:
    """The events of an ``XSpace``; there are none before the profiler has stopped."""

    def __init__(self, space: Any = None) -> None:
        self.space = space

    def call(self) -> Any:
        """A context; what runs in it is a `CALL`."""
        import tensorflow as tf

        return tf.profiler.experimental.Trace(CALL)

    def events(self, wanted: Callable[[str, int], bool]) -> Iterator[Event]:
        """The events of which ``wanted(name, start_ps)`` is true; there can be a million."""
        lines = ((plane, line) for plane in self.space.planes for line in plane.lines)
        for number, (plane, line) in enumerate(lines):
            for event in line.events:
                name = plane.event_metadata[event.metadata_id].name
                start_ps = line.timestamp_ns * _PS_PER_NS + event.offset_ps
                if wanted(name, start_ps):
                    stats = {plane.stat_metadata[stat.metadata_id].name: _value(stat, plane) for stat in event.stats}
                    yield Event(plane.name, number, line.name, name, start_ps, event.duration_ps, stats)

    def quickest_call(self) -> Event:
        """The quickest of the marked calls. Raises ValueError where there is none."""
        calls = list(self.events(lambda name, _: name == CALL))
        if not calls:
            raise ValueError("the profiler did not see the call")
        return min(calls, key=lambda call: call.duration_ps)


def _value(stat: Any, plane: Any) -> Any:
    """A text may be written in place, or be the key of a name that many events share."""
    kind = stat.WhichOneof("value")
    return plane.stat_metadata[stat.ref_value].name if kind == "ref_value" else getattr(stat, kind) if kind else None


@contextlib.contextmanager
def profiled(*, on_gpu: bool = False) -> Iterator[Profile]:
    """Watch the host without Python's own calls, and with ``on_gpu`` the kernels of GPUs. Raises RuntimeError where the
    profiler writes nothing."""
    import tensorflow as tf
    from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

    profile = Profile()
    options = tf.profiler.experimental.ProfilerOptions(
        host_tracer_level=2, python_tracer_level=0, device_tracer_level=int(on_gpu)
    )
    with tempfile.TemporaryDirectory(prefix="mapbench-", ignore_cleanup_errors=True) as folder:
        tf.profiler.experimental.start(folder, options)
        try:
            yield profile
        finally:
            tf.profiler.experimental.stop()
        files = sorted(Path(folder).rglob("*.xplane.pb"))
        if not files:
            raise RuntimeError("the profiler wrote no file of events")
        profile.space = XSpace.FromString(files[0].read_bytes())
