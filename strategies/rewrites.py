"""Mappers for rewrites that a workload has under names of its own: the name is the mapper's."""

from collections.abc import Iterable, Mapping

from strategies import batched
from strategies.spec import MODES, Mapper
from workloads.spec import Workload

# Words that stand for several strategies, or for none, where strategies are chosen.
WORDS = ("all", "default", "none", *MODES)


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
        apply=None,
        estimate=batched.estimate,
        rewrite=name,
        order=96,
    )
