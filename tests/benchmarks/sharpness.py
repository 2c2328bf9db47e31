"""How sharp verdicts are, whether they agree, whether they are true, and how long they take: now, and before.

``python -m tests.benchmarks.sharpness [--before FOLDER] [--only runs alone pairs] [--workloads …] [--keep FOLDER]``.
``--before``: a folder with an older commit (``git worktree add FOLDER COMMIT``), which is measured in alternation with
this one, run by run. Intervals of ratios are those that a run shows, also one of an older method.

- runs: reruns of default comparisons: how far they differ, what their intervals hold, whether leaders agree, time.
- alone: default scripts as copied, in fresh processes, between the first of these: their ratios beside those of runs.
- pairs: strategies against themselves, and against themselves with 20% more to do.

What lies in the folder of ``--keep`` is not measured again unless the commit is another one: so a benchmark that was
interrupted goes on, and its parts can be run one after the other. What disturbed the machine stands at the end.
"""

import argparse
import hashlib
import itertools
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from measure.run.run import Run
from tests.benchmarks import common, sharp_figures
from tests.benchmarks.checkouts import Checkout, Rerun, in_turns, once, opened
from tests.benchmarks.common import Disturbances, Figure, Problem, say
from tests.benchmarks.sharp_figures import Groups

PARTS = ("runs", "alone", "pairs")
WORKLOADS = ("image_sqrt", "outer_product", "per_example_gradients", "outer_reduce", "matmul_chain", "square")


def scripts_of(run: Run) -> dict[str, str]:
    """The scripts of the strategies that have a latency, as a person copies them."""
    timed = sharp_figures.latencies_s(run)
    return {item.strategy: item.code.source for item in run.measurements if item.strategy in timed and item.code}


def alone_s(keep: Path, turn: int, script: str) -> float:
    """Seconds of a call in the fresh process of a script's turn, which has the machine to itself."""

    def measured() -> bytes:
        with tempfile.TemporaryDirectory(prefix="mapbench-alone-") as folder:
            path = Path(folder) / "strategy.py"
            path.write_text(script, encoding="utf-8")
            command = [sys.executable, "-P", str(Path(__file__).with_name("alone_worker.py")), str(path)]
            environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True)
        if done.returncode:
            raise RuntimeError(done.stderr.decode(errors="replace"))
        return done.stdout

    digest = hashlib.sha256(script.encode()).hexdigest()[:12]
    return float(once(keep / f"alone_{turn:02}_{digest}.seconds", measured))


def reruns(
    checkouts: Sequence[Checkout], workloads: Sequence[str], count: int, turns: int, keep: Path
) -> dict[str, dict[str, list[Rerun]]]:
    """Of each checkout ``count`` runs of each default comparison, in alternation; after each of the first ``turns`` the
    scripts of the workload alone, once for both where they are the same."""
    found: dict[str, dict[str, list[Rerun]]] = {each.name: {name: [] for name in workloads} for each in checkouts}
    for number, workload in itertools.product(range(1, count + 1), workloads):
        for checkout in in_turns(number, checkouts):
            rerun = checkout.compare(f"run_{number:02}_{workload}", Problem(workload, {}))
            found[checkout.name][workload].append(rerun)
        if number <= turns:
            firsts = [groups[workload][0].run for groups in found.values()]
            scripts = list(dict.fromkeys(script for run in firsts for script in scripts_of(run).values()))
            say(f"alone, {number} of {turns}: {workload}: {len(scripts)} scripts")
            for script in random.Random(number).sample(scripts, len(scripts)):
                alone_s(keep, number, script)
    return found


def alone(
    groups: Groups, references: Mapping[str, str], turns: int, keep: Path
) -> Iterator[tuple[list[float], list[float]]]:
    """Of each strategy the ratios of its runs and of its scripts."""
    for workload, runs in groups.items():
        scripts = scripts_of(runs[0].run)
        if (reference := scripts.pop(references[workload], None)) is None:
            continue
        for slug, script in scripts.items():
            if ratios := [each.ratios[slug].ratio for each in runs if slug in each.ratios]:
                taken = range(1, turns + 1)
                yield ratios, [alone_s(keep, turn, script) / alone_s(keep, turn, reference) for turn in taken]


def of_runs(
    checkouts: Sequence[Checkout], workloads: Sequence[str], count: int, turns: int, keep: Path
) -> dict[str, list[Figure]]:
    """The figures of ``count`` reruns, and of ``turns`` of scripts alone; prints those of each workload."""
    figures: dict[str, list[Figure]] = {}
    rows: list[tuple[str, ...]] = []
    found = reruns(checkouts, workloads, count or turns, turns, keep)
    references = {
        workload: sharp_figures.reference([each.run for groups in found.values() for each in groups[workload]])
        for workload in workloads
    }
    for checkout in checkouts:
        groups = {
            workload: [replace(one, ratios=sharp_figures.ratios(one.run, references[workload])) for one in runs]
            for workload, runs in found[checkout.name].items()
        }
        figures[checkout.name] = [
            *(sharp_figures.of_runs(groups) if count else ()),
            *(sharp_figures.of_alone(alone(groups, references, turns, keep)) if turns else ()),
        ]
        rows += [
            (workload, references[workload], checkout.name, *sharp_figures.of_workload(runs))
            for workload, runs in groups.items()
        ]
    head = ("workload", "reference", "code", *sharp_figures.WORKLOAD_HEAD)
    print(f"{common.table(head, sorted(rows))}\n", flush=True)
    return figures


# --- pairs of strategies of which is known how they differ: not at all, or by 20% more to do -------------------------

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
    # 20% of the elements are done twice: they stand at the front once more.
    more = 20 * tf.nest.flatten(elems)[0].shape[0] // 100
    longer = tf.nest.map_structure(lambda leaf: tf.concat([leaf[:more], leaf], axis=0), elems)
    outputs = map_with_{slug}(fn, longer, signature)
    return tf.nest.map_structure(lambda leaf: leaf[more:], outputs)


MAPPER = dataclasses.replace(
    mapper, slug="{slug}_and_more", title=mapper.title + " and more", apply=map_more
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


def of_pairs(checkouts: Sequence[Checkout], equals: int, apart: int) -> dict[str, list[Figure]]:
    """A comparison that fails to rank both is counted against either figure."""
    different, told = Counter[str](), Counter[str]()
    for (kind, number), (case, slug, other, asked) in pairs(equals=equals, apart=apart):
        for checkout in in_turns(number, checkouts):
            ranking = checkout.compare(f"{kind}_{number:02}", case, asked).run.ranking
            different[checkout.name] += kind == "equals" and [set(group) for group in ranking] != [{slug, other}]
            told[checkout.name] += kind == "apart" and ranking == [[slug], [other]]
    return {
        each.name: [
            Figure(f"of {equals} equals, called different", different[each.name], 0.1 * equals, "{:.0f}".format),
            Figure(f"of {apart} that are 20% apart, told apart", told[each.name], 0.8 * apart, "{:.0f}".format, True),
        ]
        for each in checkouts
    }


def main() -> None:
    whole = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    whole.add_argument("--before", type=Path, metavar="FOLDER", help="a checkout of an older commit")
    whole.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    whole.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=WORKLOADS)
    whole.add_argument("--runs", type=int, default=10, help="reruns of each default comparison, at least 2 (10)")
    whole.add_argument("--turns", type=int, default=3, help="fresh processes of each script alone, at least 2 (3)")
    whole.add_argument("--equals", type=int, default=60, help="comparisons of a strategy with itself (60)")
    whole.add_argument("--apart", type=int, default=30, help="comparisons of two that are 20%% apart (30)")
    whole.add_argument("--keep", type=Path, metavar="FOLDER", help="where runs are written, and taken from")
    arguments = whole.parse_args()
    folders = {"before": arguments.before.resolve()} if arguments.before else {}
    folders["now"] = common.ROOT
    only, figures = arguments.only, {name: list[Figure]() for name in folders}
    common.start("How sharp verdicts are")
    disturbances = Disturbances()
    with tempfile.TemporaryDirectory(prefix="mapbench-sharpness-") as folder:
        keep = (arguments.keep or Path(folder) / "runs").resolve()
        keep.mkdir(parents=True, exist_ok=True)
        if "runs" in only or "alone" in only:
            with opened(folders, keep, disturbances.look) as checkouts:
                count, turns = arguments.runs * ("runs" in only), arguments.turns * ("alone" in only)
                for name, own in of_runs(checkouts, arguments.workloads, count, turns, keep).items():
                    figures[name] += own
        if "pairs" in only:
            mappers = write_mappers(Path(folder) / "mappers")
            with opened(folders, keep, disturbances.look, MAPBENCH_MAPPERS=str(mappers)) as checkouts:
                for name, own in of_pairs(checkouts, arguments.equals, arguments.apart).items():
                    figures[name] += own
    print(f"{common.table(*sharp_figures.side_by_side(figures))}\n\n{disturbances.sentence()}")


if __name__ == "__main__":
    main()
