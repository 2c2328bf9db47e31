"""The command that repeats a run (`python -m measure …`), as a line for a shell. Pure."""

import re
import shlex
from typing import Any

from msgspec import UNSET

import workloads
from measure.run.request import AUTO
from measure.run.run import Run

# The file that a function of a person's own is to be saved as.
OWN_FILE = "own.py"
# A run may come from anybody: a word of its command is no other option, and nothing that a file system follows.
_WORD = re.compile(r"\w[\w.,:=?&+-]*", re.ASCII)

_USUAL = (
    ("scale", "log"), ("device", "CPU:0"), ("machine", ""), ("memory-limit", None), ("threads", None), ("seed", 0),
    ("allocator", "pool"), ("budget", AUTO),
)  # fmt: skip


def of(run: Run) -> str:
    """The command, with the options that are not those of every run; empty where a text in its request could not have
    been asked for."""
    own = run.request.own
    if run.kind == "claims":
        names, options = [*(run.claims or ())], list[tuple[str, Any]]()
    elif own is UNSET and run.request.workload not in workloads.names():
        return ""  # it is in a file of somebody's own, which no run holds
    else:
        names = [run.request.workload if own is UNSET else f"{OWN_FILE}:{own.given.function}"]
        options = _options(run)
    if not all(_WORD.fullmatch(str(word)) for word in (*names, *(value for _, value in options))):
        return ""
    words = [word for name, value in options for word in (f"--{name}", str(value))]
    return shlex.join(["python", "-m", "measure", run.kind, *names, *words])


def _options(run: Run) -> list[tuple[str, Any]]:
    """Option and value, options that can be given several times among them."""
    request, options = run.request, list[tuple[str, Any]]()
    if request.own is not UNSET:
        given = request.own.given
        further = (("elems", given.elems), ("batched", given.batched), ("reference", given.reference))
        options += [(name, value) for name, value in further if value]
    options += [(axis.kind, f"{axis.name}={','.join(map(str, axis.values))}") for axis in run.axes]
    swept = {axis.name for axis in run.axes}
    options += [("size", f"{name}={value}") for name, value in request.size.items() if name not in swept]
    options += [("workload-option", f"{name}={value}") for name, value in request.workload_options.items()]
    given_once = {
        "scale": run.axes[0].scale if run.axes else "log", "dtype": request.dtype, "device": request.device,
        "machine": request.machine or "",
        "strategies": ",".join(request.strategies),
        "budget": AUTO if request.max_budget_s else str(request.budget_s).removesuffix(".0"),
        "memory-limit": request.memory_limit_mib, "threads": request.threads, "seed": request.seed,
        "allocator": request.allocator or "default",
    }  # fmt: skip
    return options + [(name, value) for name, value in given_once.items() if (name, value) not in _USUAL]
