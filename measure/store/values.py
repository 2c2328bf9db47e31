"""The checks of a run file's values, one by one: every number is in range, every text can be shown."""

from typing import Any

import msgspec

from measure.model.run import Run
from measure.model.script_end import ScriptEnd, refusal
from measure.model.text import COMMANDS
from measure.store.refusal import Path, quoted, refuse

_MOST_DEPTH = 14
# The path of a run within one of claims: evidence, number, run.
_WITHIN = 3
_LONGEST = 20_000
_LONGEST_NAME = 200
_NAMES = (
    *("id", "parent", "created", "started", "finished", "workload", "dtype", "device", "strategies", "strategy"),
    *("name", "axis", "a", "b", "scale", "claims", "need"),
    *("mapper", "mode", "twin_of", "stage", "code", "type", "ended", "against", "ranking", "path", "sha256"),
)
# A function of a person's own may come as code of some MiB, with the elements in it, and stands in every script.
_LONGEST_SOURCE = 4_000_000
_LONGEST_OF = {"source": _LONGEST_SOURCE, "detail": 1_000_000, **dict.fromkeys(_NAMES, _LONGEST_NAME)}

# Bounds by the name of a field, which means the same wherever it occurs; both ends are allowed.
_DURATION = (1e-12, 1e9)
_COUNT = (0, 2**63 - 1)
_SHARE = (0.0, 1.0)
_SIZE = (0.0, 1.7e308)
_BOUNDS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("median_s", "high_s", "samples_s", "seconds"), _DURATION),
    "low_s": (1e-24, 1e9),  # intervals of earlier methods may begin anywhere
    **dict.fromkeys(("fixed_s", "fixed_low_s", "fixed_high_s"), (0.0, 1e9)),
    **dict.fromkeys(("per_element_s", "per_element_low_s", "per_element_high_s"), (0.0, 1e9)),
    "value": (0.0, 1e24),
    **dict.fromkeys(("first_call_s", "at_s", "t_s", "budget_s", "dispatch_s", "op_s", "call_s"), (0.0, 1e9)),
    **dict.fromkeys(("bandwidth_bytes_per_s", "flops_per_s", "functions_per_s"), (1e-3, 1e24)),
    **dict.fromkeys(("ratio", "low", "high", "calls"), (1e-24, 1e24)),
    **dict.fromkeys(("max_abs", "max_rel", "max_ulp"), _SIZE),
    **dict.fromkeys(("mismatch_share", "margin"), _SHARE),
    "resolution": (0.0, 1e24),
    "confidence": (0.5, 0.9999),
    "spread": (0.0, 1e9),
    "calls_per_sample": (1, 1e12),
}
# Mapbench's own words, which quote nobody. An error's may come from anywhere, terminal colours included.
_OWN_WORDS = ("verdict", "method", "ended", "none")
# Fields whose contents are not fixed by the schema, or have bounds of their own there.
_FREE = ("environment", "workload_options", "options", "why", "values", "tolerance")
# How long a script took: one that was not run took no time.
_TOOK = (0.0, 1e9)


def check(run: Run) -> None:
    """Refuse a run in which a number is out of range or a text cannot be shown."""
    _check(run, (), "")


def _check(value: Any, path: Path, name: str, *, free: bool = False) -> None:
    """Check a value and all in it. ``name``: of the field that it stands in; ``free``: no schema fixes what it is."""
    if len(path) > _MOST_DEPTH + (_WITHIN if path[:1] == ("evidence",) else 0):
        refuse(path, "it is nested too deeply")
    if isinstance(value, ScriptEnd):
        _check_script(value, path)
    elif isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            _check(getattr(value, field), (*path, field), field, free=free or field in _FREE)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_text(key, (*path, key), _LONGEST_NAME)
            _check(item, (*path, key), name, free=free)
    elif isinstance(value, list | tuple):
        if not free and value and type(value[0]) in (int, float):  # then all are: samples are most of a file
            low, high = _BOUNDS.get(name, _COUNT)
            if low <= min(value) and max(value) <= high:
                return
        for index, item in enumerate(value):
            _check(item, (*path, index), name, free=free)
    elif isinstance(value, str):
        _check_text(value, path, _longest(path, name, free=free))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        low, high = (-_SIZE[1], _SIZE[1]) if free else _BOUNDS.get(name, _COUNT)
        if not low <= value <= high:  # NaN fails this too
            refuse(path, f"{quoted(value)} is not valid: a number from {low:g} to {high:g} is needed")


def _check_script(end: ScriptEnd, path: Path) -> None:
    if fault := refusal(end.figures):
        refuse((*path, "figures"), fault)
    for name in ("source", "error", "printed"):
        _check_text(getattr(end, name), (*path, name), _LONGEST_OF.get(name, _LONGEST))
    if not _TOOK[0] <= end.seconds <= _TOOK[1]:
        refuse((*path, "seconds"), f"{end.seconds} is not valid: a number from {_TOOK[0]:g} to {_TOOK[1]:g} is needed")


def _longest(path: Path, name: str, *, free: bool) -> int:
    if path[-2:] == ("given", "code"):  # a strategy's ``code`` is a name
        return _LONGEST_SOURCE
    return _LONGEST if free else _LONGEST_OF.get(name, _LONGEST)


def _check_text(text: str, path: Path, longest: int) -> None:
    """Refuse a text that is longer than ``longest`` signs or cannot be shown; names have to be printable."""
    if len(text) > longest:
        refuse(path, f"a text of {len(text):,} signs is too long: {longest:,} are allowed")
    if "\0" in text or (path and path[-1] in _OWN_WORDS and COMMANDS.search(text)):
        refuse(path, "a text holds a sign that cannot be shown")
    if longest == _LONGEST_NAME and not text.isprintable():
        refuse(path, "a name holds a sign that cannot be printed")
