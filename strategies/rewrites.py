"""Mappers that call a workload's own rewrite on the whole batch, of a name that is known or of any other."""

from collections.abc import Iterable, Mapping

from strategies.spec import CHUNK, MODES, Mapper
from workloads.spec import Workload

# Words that stand for several strategies, or for none, where strategies are chosen.
WORDS = ("all", "default", "none", *MODES)

MAPPER = (
    Mapper(
        slug="batched",
        title="Hand-written batch",
        summary="no mapping at all: the workload's rewrite works on the whole batch at once",
        rewrite="batched",
        steps="whole",
        order=90,
    ),
    Mapper(
        slug="accumulate",
        title="Accumulated chunks",
        summary="vectorised chunks one after another, each added to the result: "
        "memory follows the chunk, not the batch",
        rewrite="accumulate",
        steps="chunks",
        default_modes=("graph", "xla"),
        options=(CHUNK,),
        order=91,
    ),
    Mapper(
        slug="jacobian",
        title="GradientTape.jacobian",
        summary="the losses of all examples, and one Jacobian of them by the parameters, which TensorFlow vectorises",
        rewrite="jacobian",
        steps="whole",
        order=92,
    ),
    Mapper(
        slug="tape_batch_jacobian",
        title="GradientTape.batch_jacobian",
        summary="one forward pass over the batch, and batch_jacobian, which knows that examples do not mix",
        rewrite="tape_batch_jacobian",
        steps="whole",
        order=94,
    ),
    Mapper(
        slug="recompute",
        title="tf.recompute_grad",
        summary="the batched rewrite under tf.recompute_grad: intermediates are computed again instead of kept",
        rewrite="recompute",
        steps="whole",
        order=96,
    ),
    Mapper(
        slug="ragged",
        title="Ragged tf.map_fn",
        summary="tf.map_fn with a RaggedTensorSpec, for outputs whose shape depends on the values, then padded",
        rewrite="ragged",
        steps="while",
        order=98,
    ),
)


def mappers_of(workloads: Iterable[Workload], known: Mapping[str, Mapper]) -> dict[str, Mapper]:
    """Return a mapper by name for each rewrite that none of the ``known`` mappers, by slug, calls."""
    holders: dict[str, list[str]] = {}
    for workload in workloads:
        for name in _unclaimed(workload, known):
            if refusal(name, known) is None:
                holders.setdefault(name, []).append(workload.slug)
    return {name: _mapper(name, slugs) for name, slugs in holders.items()}


def refusals(workload: Workload, known: Mapping[str, Mapper]) -> list[str]:
    """Return a sentence for each rewrite of the workload whose name a mapper cannot have."""
    return [said for name in _unclaimed(workload, known) if (said := refusal(name, known)) is not None]


def refusal(name: str, known: Mapping[str, Mapper]) -> str | None:
    """Return the sentence that says why a rewrite's own name cannot be a mapper's; None where it can."""
    if name in known:
        return f"the rewrite {name!r} is not offered: a mapper has this name already, choose another"
    if name in WORDS:
        return f"the rewrite {name!r} is not offered: {', '.join(WORDS)} mean several strategies, choose another name"
    return None


def _unclaimed(workload: Workload, known: Mapping[str, Mapper]) -> list[str]:
    """The names of the workload's rewrites, those of its variants among them, that no mapper calls."""
    variants = [fields for by_value in workload.variants.values() for fields in by_value.values()]
    named = [workload.rewrites, *(fields.get("rewrites", {}) for fields in variants)]
    called = {mapper.rewrite for mapper in known.values()}
    return list(dict.fromkeys(name for rewrites in named for name in rewrites if name not in called))


def _mapper(name: str, holders: list[str]) -> Mapper:
    return Mapper(
        slug=name,
        title=f"Rewrite {name}",
        summary=f"a rewrite for the whole batch that the workload {' and '.join(holders)} brings along",
        rewrite=name,
        steps="whole",
        order=96,
    )
