"""Scripts that are run for their figures, each in an interpreter of its own."""

import contextlib
import math
import os
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import psutil
from msgspec import UNSET
from msgspec.structs import replace

from measure.claims.spec import Script
from measure.model.script_end import MOST_FIGURES_BYTES, ScriptEnd, refusal
from measure.pool.privacy import cleaned
from measure.pool.process import Python
from measure.subject.limits import MOST_BYTES

# Beyond so many times what its author says that a script takes, on slow machines.
_TIMES, _PATIENCE_S = 10.0, 60.0
_POLL_S = 0.05
_MOST_PRINTED = 2_000
_MOST_ERROR = 400

# Runs the script on stdin as ``__main__``, with ``report`` and ``tried``; what became of it is written to a file.
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

def error_of(fault):
    from measure.subject.errors import shorten

    text = shorten(str(getattr(fault, "message", None) or fault))
    name = type(fault).__name__
    lines = [frame.lineno for frame in traceback.extract_tb(fault.__traceback__) if frame.filename == "script.py"]
    lines += [int(line) for line in re.findall('File "script.py", line (\\d+)', str(fault))]
    if isinstance(fault, SyntaxError) and fault.lineno:
        lines.append(fault.lineno)
    return (f"line {lines[-1]}: " if lines else "") + (text if text.startswith(name) else f"{name}: {text}")

def tried(function):
    try:
        function()
    except Exception as fault:
        return error_of(fault)
    return ""

try:
    space = {"__name__": "__main__", "report": figures.update, "tried": tried}
    exec(compile(source, "script.py", "exec"), space)
except BaseException as fault:
    error = error_of(fault)
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


def run(script: Script, is_cancelled: Callable[[], bool], most_s: float = math.inf) -> ScriptEnd:
    """Run a script to its end, in as many interpreters one after the other as it asks for: of several its figures are
    lists. It is ended where somebody cancels or it needs too much memory, long after the seconds that it should take,
    and after ``most_s`` in any case; with it all processes that it has started."""
    most_s = min(_TIMES * script.seconds + _PATIENCE_S, most_s)
    end = _once(script.source, is_cancelled, most_s)
    if script.processes == 1 or end.error:
        return end
    figures, seconds = {name: [value] for name, value in end.figures.items()}, end.seconds
    for _ in range(script.processes - 1):
        end = _once(script.source, is_cancelled, most_s - seconds)
        seconds += end.seconds
        if end.error:
            return replace(end, seconds=seconds)
        for name, value in end.figures.items():
            figures.setdefault(name, []).append(value)
    return replace(end, figures=figures, seconds=seconds)


def _once(source: str, is_cancelled: Callable[[], bool], most_s: float) -> ScriptEnd:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mapbench-script-") as folder, tempfile.TemporaryFile() as text:
        file, printed = Path(folder) / "end.json", Path(folder) / "printed.txt"
        text.write(source.encode())
        text.seek(0)
        with printed.open("wb") as output:
            arguments, quiet = (str(file), str(os.getpid())), {"TF_CPP_MIN_LOG_LEVEL": "2"}
            process = Python(_RUN, *arguments, stdin=text, output=output, environment=quiet, folder=Path(folder))
        try:
            ended = ""
            while process.status is None and not ended:
                if is_cancelled():
                    ended = "it was cancelled"
                elif time.monotonic() - began > most_s:
                    ended = f"it took more than {most_s:.0f} s and was ended"
                elif _resident(process.pid) > MOST_BYTES:
                    ended = f"it needs more than {MOST_BYTES / 2**30:.3g} GiB and was ended"
                else:
                    time.sleep(_POLL_S)
        finally:
            status = process.end()
        with printed.open("rb") as output:
            output.seek(max(0, printed.stat().st_size - 4 * _MOST_PRINTED))  # signs of up to four bytes
            said = output.read().decode(errors="replace")
        end = _read(file, status)
    return ScriptEnd(
        source=source,
        figures=cleaned(end.figures),
        error=(ended or cleaned(end.error))[:_MOST_ERROR],
        # Who kills, as the kernel does where memory is short, is not the script.
        ended=True if ended or status == -signal.SIGKILL else UNSET,
        printed=cleaned(said[-_MOST_PRINTED:].replace("\0", "")),
        seconds=time.monotonic() - began,
    )


def _resident(pid: int) -> int:
    with contextlib.suppress(psutil.Error):
        return int(psutil.Process(pid).memory_info().rss)
    return 0


def _read(file: Path, status: int | None) -> _End:
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
