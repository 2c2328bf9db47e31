"""Comparisons of two strategies of which is known how they differ: not at all, or by 15 % more to do."""

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import strategies
from measure.model import text
from measure.model.run import Run
from measure.runner import Runner
from tests.benchmarks import common
from tests.benchmarks.common import Figure, Problem, say

_AGAIN, _MORE = "_again", "_and_more"
_EQUAL = """\
import dataclasses

from strategies import {slug}

MAPPER = dataclasses.replace({slug}.MAPPER, slug="{slug}_again", title={slug}.MAPPER.title + ", again")
"""
_SLOWER = '''\
"""{slug} with 15 % of the elements done twice: they stand at the front once more."""

import dataclasses

from strategies import {slug}


def map_more(fn, elems, signature):
    more = 15 * tf.nest.flatten(elems)[0].shape[0] // 100
    longer = tf.nest.map_structure(lambda leaf: tf.concat([leaf[:more], leaf], axis=0), elems)
    outputs = map_with_{slug}(fn, longer, signature)
    return tf.nest.map_structure(lambda leaf: leaf[more:], outputs)


MAPPER = dataclasses.replace(
    {slug}.MAPPER, slug="{slug}_and_more", title="{slug} and more", apply=map_more,
    helpers=(*{slug}.MAPPER.helpers, {slug}.map_with_{slug}),
)
'''
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


@contextmanager
def mappers(folder: Path) -> Iterator[None]:
    """Offer each mapper again under another name, and those of `APART` with more to do."""
    folder.mkdir()
    for mapper in strategies.mappers():
        (folder / f"{mapper.slug}{_AGAIN}.py").write_text(_EQUAL.format(slug=mapper.slug), encoding="utf-8")
    for slug in {slug.partition(".")[0] for _, slug in APART}:
        (folder / f"{slug}{_MORE}.py").write_text(_SLOWER.format(slug=slug), encoding="utf-8")
    os.environ["MAPBENCH_MAPPERS"] = str(folder)
    try:
        yield
    finally:
        del os.environ["MAPBENCH_MAPPERS"]


def other(slug: str, ending: str) -> str:
    mapper, _, mode = slug.partition(".")
    return f"{mapper}{ending}.{mode}"


def called_different(runner: Runner, count: int) -> int:
    """Of so many comparisons of a strategy with itself, those that say that one is faster."""
    different = 0
    for number, (case, slug) in enumerate(itertools.islice(itertools.cycle(EQUALS), count), 1):
        # Which of the two comes first changes from turn to turn.
        slugs = [slug, other(slug, _AGAIN)][:: 1 if (number // len(EQUALS)) % 2 else -1]
        run = common.compare(runner, case.request(slugs))
        complete(run)
        different += len(run.ranking) > 1
        say(f"equals, {number} of {count}: {case}: {slug}: {run.verdict}")
    return different


def told_apart(runner: Runner, count: int) -> int:
    """Of so many comparisons of two that are 15 % apart, those that name the faster one alone."""
    right = 0
    for number, (case, fast) in enumerate(itertools.islice(itertools.cycle(APART), count), 1):
        run = common.compare(runner, case.request([fast, other(fast, _MORE)]))
        complete(run)
        right += run.ranking[0] == [fast]
        say(f"15 % apart, {number} of {count}: {fast}: {run.verdict}")
    return right


def complete(run: Run) -> None:
    if sum(map(len, run.ranking)) != 2:
        raise RuntimeError(str([(item.strategy, item.outcome, item.error) for item in run.measurements]))


def figures(runner: Runner, equals: int, apart: int) -> Sequence[Figure]:
    different = called_different(runner, equals)
    share = told_apart(runner, apart) / apart
    return (
        Figure(f"of {equals} pairs of equals called different", different, 3, show=text.number),
        Figure("15 % apart and told apart", share, 0.9, None, text.percent, True),
    )
