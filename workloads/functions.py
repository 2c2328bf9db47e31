"""Functions of a person's own as workloads: the code as it was given, and what was derived from it.

Everything here is data. The code is executed in processes that are thrown away (`measure.subject.derive`), and a
workload is made of it where somebody gives it to this process, and never of the code that an imported run brings along.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from workloads.spec import Cost, Leaf, SizeParameter, Workload, type_nest

GROUP = "Your own"
# Sizes that nobody has bounded.
MOST_BATCH, MOST_SIZE = 100_000_000, 1_000_000
# Signs of code that a run may hold, pickled values among them.
MOST_CODE = 4_000_000
_Sentence = Annotated[str, msgspec.Meta(max_length=20_000)]


class Given(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A function of a person's own: ``code`` is Python; all else are names in it.

    ``function`` maps one element. ``elems`` is what it is mapped over: arrays, or a function that makes them; its
    whole-number parameters that have a default are sizes. ``batched`` is a rewrite for the whole batch and
    ``reference`` computes the right results, of NumPy arrays, for the whole batch; both may be missing.
    """

    code: Annotated[str, msgspec.Meta(max_length=MOST_CODE)]
    function: str
    elems: str
    batched: str = ""
    reference: str = ""

    @property
    def slug(self) -> str:
        """The function's name and a digest of everything that was given: other code is another workload."""
        name = re.sub(r"[^a-z0-9_]", "", self.function.lower()).strip("_") or "function"
        digest = hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:8]
        return f"{name if name[0].isalpha() else f'f_{name}'}_{digest}"


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that were derived of a function at one size.

    ``size``: the sizes, ``batch`` among them. ``element`` and ``result``: nests of `Leaf` of one element, as
    `leaves_to_wire` writes them. ``variable_bytes``: of tensors and variables that the function holds.
    ``reference``: how right results come about: ``float64``, the function itself, slice by slice, in float64; ``own``,
    the same in its own dtype; ``given``; or ``shapes``, since results change from call to call and only their shapes
    and dtypes can be compared. ``notes``: sentences on what was derived and what it means. ``unsupported``: pattern of
    ``mapper.mode`` → why such a strategy cannot work. ``title`` and ``presets``: of the code's `TITLE` and `PRESETS`,
    where it has them. ``unknown_work``: types of ops whose work is not known, so that ``flops`` are those of the
    others; not in the file otherwise. ``functions``, ``temporary_bytes``, ``draws``, ``asserts`` and ``effects`` are in
    runs of earlier versions.
    """

    size: dict[str, int]
    element: Any
    result: Any
    dtype: str
    reference: str
    flops: int = 0
    ops: int = 1
    functions: dict[str, int] = {}
    temporary_bytes: int = 0
    batched_temporary_bytes: int = 0
    depth: int = 1
    variable_bytes: int = 0
    is_called: bool = False
    parameters: list[str] = []
    draws: bool = False
    asserts: bool = False
    effects: bool = False
    notes: Annotated[list[_Sentence], msgspec.Meta(max_length=100)] = []
    unsupported: dict[str, str] = {}
    title: _Sentence = ""
    presets: dict[str, dict[str, int]] = {}
    unknown_work: list[str] | msgspec.UnsetType = msgspec.UNSET


class Named(tuple):
    """The parts of a named tuple of an op, such as those of `tf.math.top_k`: strategies give a plain tuple of them."""


def has_named(nest: type_nest) -> bool:
    parts = nest.values() if isinstance(nest, Mapping) else nest if isinstance(nest, tuple | list) else ()
    return isinstance(nest, Named) or any(map(has_named, parts))


def leaves_to_wire(nest: type_nest) -> Any:
    """Return a nest of `Leaf` as plain data in which tuples, named ones, lists and dicts can be told apart."""
    if isinstance(nest, Leaf):
        return ["leaf", nest]
    if isinstance(nest, Mapping):
        return ["dict", {key: leaves_to_wire(part) for key, part in nest.items()}]
    is_named = isinstance(nest, Named) or hasattr(nest, "_fields")
    kind = "named" if is_named else "tuple" if isinstance(nest, tuple) else "list"
    return [kind, [leaves_to_wire(part) for part in nest]]


def leaves_from_wire(wire: Any) -> type_nest:
    kind, value = wire
    if kind == "leaf":
        return msgspec.convert(value, Leaf)
    if kind == "dict":
        return {key: leaves_from_wire(part) for key, part in value.items()}
    parts = [leaves_from_wire(part) for part in value]
    return {"tuple": tuple, "named": Named, "list": list}[kind](parts)


class OwnFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A function that was given, with what was derived of it at the sizes that a run has."""

    given: Given
    facts: Facts


_derived: dict[str, dict[tuple[Any, ...], OwnFunction]] = {}  # by slug and size: first as it was given
_workloads: dict[str, Workload] = {}


def add(own: OwnFunction) -> str:
    """Make a function that was given here a workload of this process; its slug."""
    slug = own.given.slug
    _derived.setdefault(slug, {})[_beside_batch(own.facts.size)] = own
    if slug not in _workloads:
        _workloads[slug] = _workload(own)
    return slug


def get(slug: str, size: Mapping[str, int] | None = None) -> OwnFunction | None:
    """Return the function with this slug as it was derived at a size, whatever the batch; without a size, as it was
    first given. None where it was not."""
    derived = _derived.get(slug, {})
    return next(iter(derived.values()), None) if size is None else derived.get(_beside_batch(size))


def workloads() -> Mapping[str, Workload]:
    return dict(_workloads)


def version() -> int:
    return len(_workloads)


def _beside_batch(size: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple((name, size[name]) for name in sorted(size) if name != "batch")


def stand_in(name: str) -> Any:
    """A function that stands in for one of this name, which scripts hold: it is never called."""

    def stands_in() -> None: ...

    stands_in.__name__ = name
    return stands_in


def _workload(own: OwnFunction) -> Workload:
    given, first = own.given, own.facts

    def at(case: Mapping[str, Any]) -> Facts:
        """The facts at a size; where they were not derived yet, the forecast is that of the first."""
        return (get(given.slug, {name: case[name] for name in first.size}) or own).facts

    def cost(**case: Any) -> Cost:
        facts = at(case)
        return Cost(facts.ops, facts.flops, facts.batched_temporary_bytes, facts.depth)

    further = {name: value for name, value in first.size.items() if name != "batch"}
    return Workload(
        slug=given.slug,
        title=first.title or given.function,
        group=GROUP,
        formula=f"{given.function}(x) for each x of {given.elems}",
        summary=" ".join(first.notes),
        sizes=(
            SizeParameter("batch", first.size["batch"], 1, MOST_BATCH, "elements, the mapped axis"),
            *(
                SizeParameter(name, value, min(1, value), max(MOST_SIZE, value), f"the {name} of {given.elems}")
                for name, value in further.items()
            ),
        ),
        presets=first.presets,
        dtypes=(first.dtype,),
        inputs=stand_in(given.elems),
        element=stand_in(given.function),
        rewrites={"batched": stand_in(given.batched)} if given.batched else {},
        reference=stand_in(given.reference),
        element_input=lambda **case: leaves_from_wire(at(case).element),
        element_output=lambda **case: leaves_from_wire(at(case).result),
        variable_leaves=lambda **case: (Leaf((at(case).variable_bytes,), "uint8"),),
        cost=cost,
        unsupported=first.unsupported,
        own=given,
    )
