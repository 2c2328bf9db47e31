"""What Python offers keeps its names, arguments and defaults (`python -m tests.golden.renew`)."""

import inspect
from typing import Any

import mapbench
from tests.golden.renew import differences, golden


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
