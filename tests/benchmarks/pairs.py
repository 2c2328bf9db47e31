"""Comparisons of two strategies of which is known how they differ: not at all, or by 20 % more to do."""

import itertools
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.common import Problem

_AGAIN, _MORE = "_again", "_and_more"
# A file has one mapper, or a tuple of several.
_MAPPER = """\
import dataclasses
import importlib
import pkgutil

import strategies

modules = [importlib.import_module(f"strategies.{{one.name}}") for one in pkgutil.iter_modules(strategies.__path__)]
offered = [getattr(module, "MAPPER", ()) for module in modules]
every = [mapper for own in offered for mapper in (own if isinstance(own, tuple) else (own,))]
mapper = next(mapper for mapper in every if mapper.slug == "{slug}")
"""
_EQUAL = """
MAPPER = dataclasses.replace(mapper, slug="{slug}_again", title=mapper.title + ", again")
"""
_SLOWER = """
from strategies.{slug} import map_with_{slug}


def map_more(fn, elems, signature):
    # 20 % of the elements are done twice: they stand at the front once more.
    more = 20 * tf.nest.flatten(elems)[0].shape[0] // 100
    longer = tf.nest.map_structure(lambda leaf: tf.concat([leaf[:more], leaf], axis=0), elems)
    outputs = map_with_{slug}(fn, longer, signature)
    return tf.nest.map_structure(lambda leaf: leaf[more:], outputs)


MAPPER = dataclasses.replace(
    mapper, slug="{slug}_and_more", title=mapper.title + " and more", apply=map_more, helpers=(map_with_{slug},)
)
"""
_TINY = {"batch": 1, "height": 8, "width": 8, "channels": 1}
# Fast and slow, eager, graph and XLA: 10 µs to 60 ms a call.
EQUALS = (
    (Problem("image_sqrt", _TINY), "batched.eager"),
    (Problem("image_sqrt", _TINY), "batched.graph"),
    (Problem("image_sqrt", {"batch": 100}), "batched.xla"),
    (Problem("image_sqrt", {"batch": 100}), "map_fn.graph"),
    (Problem("image_sqrt", {"batch": 100}), "loop.eager"),
    (Problem("outer_product", {"batch": 100, "side": 16}), "vectorized_map.graph"),
    (Problem("outer_product", {"batch": 100, "side": 16}), "map_fn.xla"),
    (Problem("outer_product", {"batch": 100, "side": 16}), "map_fn.eager"),
    (Problem("per_example_gradients", {"batch": 64}), "vectorized_map.xla"),
    (Problem("per_example_gradients", {"batch": 64}), "vectorized_map.eager"),
    (Problem("per_example_gradients", {"batch": 64}), "loop.graph"),
    (Problem("per_example_gradients", {"batch": 64}), "loop.eager"),
)
APART = (
    (Problem("image_sqrt", {"batch": 100, "height": 16, "width": 16, "channels": 3}), "loop.eager"),
    (Problem("per_example_gradients", {"batch": 400}), "map_fn.graph"),
)


# What is compared in the pairs of a kind, and how the other one's mapper ends.
KINDS = {"equals": (EQUALS, _AGAIN), "apart": (APART, _MORE)}


def pairs(**counts: int) -> Iterator[tuple[tuple[str, int], tuple[Problem, str, str, list[str]]]]:
    """So many of each kind, with kind and number: the case, the strategy, the other one, and both in the order in which
    they are asked for, which changes from turn to turn."""
    for kind, count in counts.items():
        cases, ending = KINDS[kind]
        for number, (case, slug) in enumerate(itertools.islice(itertools.cycle(cases), count)):
            mapper, _, mode = slug.partition(".")
            other = f"{mapper}{ending}.{mode}"
            asked = [slug, other][:: -1 if number // len(cases) % 2 else 1]
            yield (kind, number + 1), (case, slug, other, asked)


def write_mappers(folder: Path) -> Path:
    """Write the others' mappers into a new folder, for ``MAPBENCH_MAPPERS``."""
    folder.mkdir()
    for (cases, ending), source in zip(KINDS.values(), (_EQUAL, _SLOWER), strict=True):
        for slug in {slug.partition(".")[0] for _, slug in cases}:
            (folder / f"{slug}{ending}.py").write_text((_MAPPER + source).format(slug=slug), encoding="utf-8")
    return folder
