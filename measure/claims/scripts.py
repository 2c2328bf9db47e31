"""Scripts of claims that are run for their figures, each in an interpreter of its own."""

import json
import math
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import UNSET
from msgspec.structs import replace

from measure.claims.spec import Script
from measure.engine.bench import temporary_folder
from measure.pool.privacy import cleaned
from measure.pool.process import Python
from measure.run.run import ScriptEnd

# Beyond so many times what its author says that a script takes, on slow machines.
_TIMES, _PATIENCE_S = 10.0, 60.0
_POLL_S = 0.05
_MOST_PRINTED = 2_000
_MOST_ERROR = 400

# Begins every script, so that a person can run it too.
_HEAD = """\
figures = {}


def report(**more):
    figures.update(more)
    if __name__ == "__main__":
        print(more)


def tried(function):
    try:
        function()
    except Exception as error:
        return error
    return ""


"""
# Runs the file script.py, and writes its figures and its error to end.json. It ends with its parent, and before it
# where memory runs out.
_RUN = """
import json, sys, traceback, types
from measure.subject.errors import describe
from measure.subject.lifeline import SUBJECT_OOM_SCORE, die_with_parent, offer_memory

die_with_parent(int(sys.argv[1]))
offer_memory(SUBJECT_OOM_SCORE)
error, module = "", types.ModuleType("script")
sys.modules["script"] = module  # where AutoGraph looks for it

def error_of(fault):
    lines = [frame.lineno for frame in traceback.extract_tb(fault.__traceback__) if frame.filename == "script.py"]
    failed = describe(fault)
    return (f"line {lines[-1]}: " if lines else "") + f"{failed.type}: {failed.message}"

try:
    with open("script.py", encoding="utf-8") as file:
        exec(compile(file.read(), "script.py", "exec"), vars(module))
except BaseException as fault:
    error = error_of(fault)
with open("end.json", "w") as file:
    json.dump({"figures": vars(module).get("figures", {}), "error": error}, file, allow_nan=False, default=error_of)
"""


def whole(source: str) -> str:
    """Return the code of a script as it runs; a run may hold it without its head."""
    return source if source.startswith(_HEAD) else _HEAD + source


def run(script: Script, is_cancelled: Callable[[], bool], most_s: float = math.inf) -> ScriptEnd:
    """Run a script to its end, in as many interpreters one after the other as it asks for: of several its figures are
    lists. It is ended where somebody cancels, long after the seconds that it should take, and after ``most_s`` in any
    case, with all processes that it has started."""
    most_s = min(_TIMES * script.seconds + _PATIENCE_S, most_s)
    ends: list[ScriptEnd] = []
    while len(ends) < script.processes and not (ends and ends[-1].error):
        ends.append(_once(whole(script.source), is_cancelled, most_s - sum(end.seconds for end in ends)))
    if len(ends) == 1:
        return ends[0]
    figures = {name: [end.figures.get(name) for end in ends] for name in ends[0].figures}
    return replace(ends[-1], figures=figures, seconds=sum(end.seconds for end in ends))


def _once(source: str, is_cancelled: Callable[[], bool], most_s: float) -> ScriptEnd:
    begun_s = time.monotonic()
    with temporary_folder() as name:
        folder = Path(name)
        (folder / "script.py").write_text(source, encoding="utf-8")
        with (folder / "printed.txt").open("wb") as output:
            process = Python(
                _RUN, str(os.getpid()), stdin=subprocess.DEVNULL, output=output,
                environment={"TF_CPP_MIN_LOG_LEVEL": "2", "TMPDIR": name}, folder=folder,
            )  # fmt: skip
        ended = ""
        try:
            while process.status is None and not ended:
                if is_cancelled():
                    ended = "it was cancelled"
                elif time.monotonic() - begun_s > most_s:
                    ended = f"it took more than {most_s:.0f} s and was ended"
                else:
                    time.sleep(_POLL_S)
        finally:
            status = process.end()
        printed = (folder / "printed.txt").read_text(encoding="utf-8", errors="replace")
        try:
            end = json.loads((folder / "end.json").read_bytes())
        except (OSError, ValueError):  # it ended before it had written all of it
            end = {"figures": {}, "error": f"its process ended with status {status}"}
    return ScriptEnd(
        source=source,
        figures=cleaned(end["figures"]),
        error=(ended or cleaned(end["error"]))[:_MOST_ERROR],
        # Who kills, as the kernel does where memory is short, is not the script.
        ended=True if ended or status == -signal.SIGKILL else UNSET,
        printed=cleaned(printed)[-_MOST_PRINTED:],
        seconds=time.monotonic() - begun_s,
    )
