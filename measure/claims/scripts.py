"""Scripts that are run for their figures, each in an interpreter of its own."""

import contextlib
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import psutil
from msgspec import UNSET
from msgspec.structs import replace

from measure.engine.privacy import cleaned
from measure.model.script_end import MOST_FIGURES_BYTES, ScriptEnd, refusal
from measure.subject.lifeline import end_family, family_name
from measure.subject.limits import MOST_BYTES
from workloads.places import PROJECT

# Beyond what its author says that a script takes, on slow machines.
_PATIENCE_S = 60.0
_POLL_S = 0.05
_MOST_PRINTED = 2_000
_MOST_ERROR = 400

# Runs the script on stdin as ``__main__``, with ``report``; what became of it is written to the file that is named.
# It ends with its parent, and what it prints or writes fills no disk.
_RUN = """
import json, linecache, re, sys, traceback
from measure.subject.lifeline import die_with_parent

die_with_parent(int(sys.argv[2]))
try:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**26, 2**26))
except (ImportError, ValueError):
    pass  # not on every system
source, figures, error = sys.stdin.read(), {}, ""
linecache.cache["script.py"] = (len(source), None, source.splitlines(True), "script.py")
try:
    exec(compile(source, "script.py", "exec"), {"__name__": "__main__", "report": figures.update})
except BaseException as fault:
    from measure.subject.errors import shorten

    text = shorten(str(getattr(fault, "message", None) or fault))
    name = type(fault).__name__
    lines = [frame.lineno for frame in traceback.extract_tb(fault.__traceback__) if frame.filename == "script.py"]
    lines += [int(line) for line in re.findall('File "script.py", line (\\\\d+)', str(fault))]
    if isinstance(fault, SyntaxError) and fault.lineno:
        lines.append(fault.lineno)
    error = (f"line {lines[-1]}: " if lines else "") + (text if text.startswith(name) else f"{name}: {text}")
try:
    end = json.dumps({"figures": figures, "error": error}, default=repr, allow_nan=False)
except (TypeError, ValueError, RecursionError) as fault:
    end = json.dumps({"figures": {}, "error": f"its figures cannot be kept: {fault}"})
with open(sys.argv[1], "w") as file:
    file.write(end)
"""


class _End(msgspec.Struct):
    figures: dict[str, Any]
    error: str


def run(source: str, seconds: float, is_cancelled: Callable[[], bool], most_s: float = math.inf) -> ScriptEnd:
    """Run a script to its end. It is ended where somebody cancels or it needs too much memory, long after ``seconds``,
    which it should take, and after ``most_s`` in any case; with it all processes that it has started."""
    most_s = min(seconds + _PATIENCE_S, most_s)
    began, family = time.monotonic(), family_name()
    with tempfile.TemporaryDirectory(prefix="mapbench-script-") as folder:
        file, printed = Path(folder) / "end.json", Path(folder) / "printed.txt"
        with printed.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-c", _RUN, str(file), str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=folder,
                env={**os.environ, **family, "PYTHONPATH": str(PROJECT), "TF_CPP_MIN_LOG_LEVEL": "2"},
                start_new_session=True,
            )
        try:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
                pipe.write(source.encode())
            ended = ""
            while process.poll() is None and not ended:
                if is_cancelled():
                    ended = "it was cancelled"
                elif time.monotonic() - began > most_s:
                    ended = f"it took more than {most_s:.0f} s and was ended"
                elif _resident(process.pid) > MOST_BYTES:
                    ended = f"it needs more than {MOST_BYTES / 2**30:.3g} GiB and was ended"
                else:
                    time.sleep(_POLL_S)
        finally:
            end_family(family)
            process.wait()
        with printed.open("rb") as output:
            output.seek(max(0, printed.stat().st_size - 4 * _MOST_PRINTED))  # signs of up to four bytes
            said = output.read().decode(errors="replace")
        end = _read(file, process.returncode)
    return ScriptEnd(
        source=source,
        figures=cleaned(end.figures),
        error=(ended or cleaned(end.error))[:_MOST_ERROR],
        # Who kills, as the kernel does where memory is short, is not the script.
        ended=True if ended or process.returncode == -signal.SIGKILL else UNSET,
        printed=cleaned(said[-_MOST_PRINTED:].replace("\0", "")),
        seconds=time.monotonic() - began,
    )


def together(first: ScriptEnd, second: ScriptEnd) -> ScriptEnd:
    """A script that was run twice, as one run: the samples of the second follow those of the first, and all else is as
    it was first. Where the second did not come to its end, or both have too many samples, the first stands."""
    figures = dict(first.figures)
    for name, more in second.figures.items():
        if isinstance(more, list) and isinstance(known := figures.get(name), list):
            figures[name] = [*known, *more]
    if second.error or refusal(figures):
        return first
    return replace(first, figures=figures, seconds=first.seconds + second.seconds)


def _resident(pid: int) -> int:
    with contextlib.suppress(psutil.Error):
        return int(psutil.Process(pid).memory_info().rss)
    return 0


def _read(file: Path, status: int) -> _End:
    try:
        if file.stat().st_size > 2 * MOST_FIGURES_BYTES:  # blanks count here, and not below
            return _End({}, f"it reported more than {MOST_FIGURES_BYTES >> 10:,} KiB of figures")
        end = msgspec.json.decode(file.read_bytes(), type=_End)
    except OSError:
        return _End({}, f"its process ended with status {status}")
    except msgspec.DecodeError as error:
        return _End({}, f"its figures cannot be kept: {error}")
    fault = refusal(end.figures)
    return _End({}, f"its figures cannot be kept: {fault}") if fault else end
