"""An interpreter that has imported TensorFlow and NumPy and nothing else, and is forked for every run of a script.

A fresh interpreter takes seconds to import TensorFlow. A fork of one that has, but has started none of its threads,
is as good: no device is there, no op has run, and nothing of the project's is imported or can be.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# The fork leaves the loop, so that its script runs, fails and ends as the program of an interpreter does.
_PROGRAM = """
import gc, json, os, sys
import numpy, tensorflow
gc.collect()
gc.freeze()
for line in sys.stdin:
    asked = json.loads(line)
    if not (child := os.fork()):
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
os.chdir(asked["folder"])
for number, name in enumerate(("empty", "stdout", "stderr")):
    os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND), number)
sys.argv = ["-c", *asked["arguments"]]
sys.stdin = open(0, closefd=False)
exec(compile(asked["code"], "<string>", "exec"), {"__name__": "__main__"})
"""


class WarmInterpreter:
    """One such interpreter, isolated as by ``python -I``; it runs one script at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _PROGRAM],
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, code: str, *arguments: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
        """What ``python -I -c code arguments…`` would do in ``folder``, which must be empty."""
        assert self._process.stdin is not None and self._process.stdout is not None
        asked = {"code": code, "arguments": list(map(str, arguments)), "folder": str(folder)}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        status = self._process.stdout.readline()
        assert status, "the warm interpreter has ended"
        out, err = ((folder / name).read_text(encoding="utf-8") for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess([code], int(status), out, err)

    def close(self) -> None:
        """End it; it has nothing more to do."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@contextlib.contextmanager
def warm_interpreter() -> Iterator[WarmInterpreter]:
    """A warm interpreter for the length of a ``with``."""
    interpreter = WarmInterpreter()
    try:
        yield interpreter
    finally:
        interpreter.close()
