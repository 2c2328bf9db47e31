"""The text of every built-in script, shown and run, and the names, arguments and defaults that Python offers are those
that they were (`python -m tests.golden.renew`)."""

import hashlib
import inspect
from typing import Any

import mapbench
import strategies
import workloads
from tests.golden import present
from tests.golden.renew import differences, golden

# Beside every workload at its defaults: what else stands in a script.
FURTHER: tuple[tuple[str, dict[str, Any], list[str]], ...] = (
    ("threads", {"workload": "square", "threads": 2}, ["map_fn.graph"]),
    ("allocator", {"workload": "square", "allocator": "default"}, ["map_fn.graph", "numpy.eager"]),
    ("device", {"workload": "square", "device": "GPU:0"}, ["batched.xla"]),
    ("dtype and seed", {"workload": "outer_product", "dtype": "bfloat16", "seed": 2**32 - 1}, ["loop.eager"]),
    ("size", {"workload": "outer_product", "size": {"batch": 7, "side": 3}}, ["batched.graph"]),
    ("memory limit", {"workload": "image_sqrt", "memory_limit_mib": 64}, ["chunked.graph"]),
    ("options", {"workload": "square"}, ["map_fn.graph?parallel_iterations=3", "chunked.graph?chunk=5"]),
)


def digests() -> dict[str, dict[str, str]]:
    """Workload and option → strategy → the first digits of its script's SHA-256."""
    made = {}
    cases = list(FURTHER)
    for workload in workloads.all():
        for options in workload.choices():
            slugs = [strategy.slug for strategy in strategies.all_strategies(workload.variant(options))]
            name = " ".join([workload.slug, *(f"{option}={value}" for option, value in options.items())])
            cases.append((name, {"workload": workload.slug, "workload_options": options}, slugs))
    for name, asked, slugs in cases:
        texts = present.scripts(asked, slugs)
        made[name] = {slug: hashlib.sha256(text.encode()).hexdigest()[:16] for slug, text in texts.items()}
    return made


def test_every_script_is_as_it_was() -> None:
    now = digests()
    assert sum(map(len, now.values())) > 1_000 and differences(golden("scripts"), now) == []


def signatures() -> dict[str, Any]:
    """Public name → its arguments with their defaults; of a class those of each public method, None for a
    property; of an exception its base."""
    made: dict[str, Any] = {}
    for name in mapbench.__all__:
        own = getattr(mapbench, name)
        if inspect.isclass(own) and issubclass(own, Exception):
            made[name] = own.__mro__[1].__name__
        elif inspect.isclass(own):
            made[name] = {key: _arguments(getattr(own, key)) for key in dir(own) if not key.startswith("_")}
        else:
            made[name] = _arguments(own)
    return made


def _arguments(own: Any) -> str | None:
    if not callable(own):
        return None
    signature = inspect.signature(own)
    plain = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))


def test_names_arguments_and_defaults_are_as_they_were() -> None:
    assert differences(golden("python"), signatures()) == []
