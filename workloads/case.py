"""One case: a workload at a size, in a dtype, with its options, on a device. It is made once and passed on."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from workloads.discovery import DiscoveryError
from workloads.spec import Cost, Leaf, Workload, leaves, map_leaves, type_nest


@dataclass(frozen=True)
class Case:
    """A workload with everything that its functions may ask for. ``workload`` has its options applied (see
    `Workload.variant`), whichever was given. ``size`` has a value for each of its sizes, and ``options`` for each of
    its options: those that are not given have their defaults. ``device`` is ``CPU:0`` or ``GPU:n``, and ``seed`` is
    that of the inputs. Bytes are those of the whole batch."""

    workload: Workload
    size: Mapping[str, int]
    dtype: str
    options: Mapping[str, Any] = field(default_factory=dict)
    device: str = "CPU:0"
    seed: int = 0

    def __post_init__(self) -> None:
        options = {**self.workload.default_options(), **self.options}
        object.__setattr__(self, "options", options)
        object.__setattr__(self, "workload", self.workload.variant(options))

    @property
    def batch(self) -> int:
        return self.size["batch"]

    def call(self, function: Callable[..., Any]) -> Any:
        """Return what ``function``, one of the workload's that need no TensorFlow, gives for the case. Raises
        `DiscoveryError` with a sentence where it fails."""
        arguments = self.arguments(function)
        try:
            return function(**arguments)
        except Exception as error:  # whatever somebody else's file may raise
            given = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
            what = f"{type(error).__name__}: {error}"
            raise DiscoveryError(f"{self.workload.slug}: {function.__name__}({given}) fails: {what}") from error

    def arguments(self, function: Callable[..., Any], *, further: bool = False) -> dict[str, Any]:
        """Return the case's value for each argument that ``function`` names, in its order, and all for ``**``; only of
        the ``further`` ones after a ``*``, where it is handed tensors or arrays. Raises ValueError with a sentence
        where it needs one that no case has."""
        values = {**self.size, **self.options, "dtype": self.dtype, "seed": self.seed}
        named: dict[str, Any] = {}
        for parameter in _parameters(function):
            if further and parameter.kind is not parameter.KEYWORD_ONLY:
                continue
            if parameter.kind is parameter.VAR_KEYWORD:
                named |= values
            elif parameter.name in values:
                named[parameter.name] = values[parameter.name]
            elif parameter.default is parameter.empty:
                raise ValueError(
                    f"{self.workload.slug}: {function.__name__} asks for {parameter.name!r}: "
                    f"it can have {', '.join(values)}"
                )
        return named

    def keywords(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Return the same of what ``function``, one that is handed tensors or arrays, names after its ``*``."""
        return self.arguments(function, further=True)

    def leaves(self, function: Callable[..., type_nest] | None) -> list[Leaf]:
        """Return the leaves that ``function``, one of the workload's, describes; none where there is no function."""
        return [] if function is None else leaves(self.call(function))

    @cached_property
    def cost(self) -> Cost:
        return self.call(self.workload.cost)

    @cached_property
    def output(self) -> type_nest:
        """The nest of `Leaf` of the whole output, batch axis included."""
        if self.workload.output is not None:
            return self.call(self.workload.output)
        return map_leaves(self._of_batch, self.call(self.workload.element_output))

    def _of_batch(self, leaf: Leaf) -> Leaf:
        return replace(leaf, shape=(self.batch, *leaf.shape))

    @cached_property
    def input_bytes(self) -> int:
        return sum(self._of_batch(leaf).bytes for leaf in self.leaves(self.workload.element_input))

    @cached_property
    def captured_bytes(self) -> int:
        """Bytes of the workload's variables, which a strategy captures."""
        return sum(leaf.bytes for leaf in self.leaves(self.workload.variable_leaves))

    @cached_property
    def output_bytes(self) -> int:
        return sum(leaf.bytes for leaf in leaves(self.output))

    @cached_property
    def reference_bytes(self) -> int:
        """Bytes of the output in float64, as the reference has it."""
        return sum(replace(leaf, dtype="float64").bytes for leaf in leaves(self.output))

    @property
    def read_bytes(self) -> int:
        """Bytes that a call reads: inputs and variables."""
        return self.input_bytes + self.captured_bytes

    @property
    def tensor_bytes(self) -> int:
        """Bytes of inputs, variables and the output: the least that any strategy holds."""
        return self.read_bytes + self.output_bytes


# A page asks for them some sixty times at each of its draws.
@lru_cache
def _parameters(function: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(function).parameters.values())
