"""The whole grid of workloads × mappers × modes at small sizes: what becomes of each cell (`python -m tests.grid`).

``--write`` measures every cell and rewrites the table, the digests of what it was measured of, and workloads/GRID.md;
names of workloads restrict it. A cell whose outcome depends on oneDNN has two rows: ``on``, with oneDNN on a processor
with AVX-512, and ``off``, without one of the two.
"""

import argparse
import csv
import dataclasses
import hashlib
import itertools
import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import strategies
import workloads
from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.pool.launcher import Launcher
from measure.run.request import Request, case_of, parse
from measure.run.run import Measurement, Run
from strategies import script
from tests.deadlines import RUN_S
from tests.engine import running_host
from workloads.spec import Workload

# However busy the machine is, no cell of a variant is left out.
HOUR_S = 3_600.0

TABLE = Path(__file__).with_name("data") / "grid.csv"
SOURCES = TABLE.with_suffix(".json")
DOCUMENT = Path(__file__).parent.parent / "workloads" / "GRID.md"

# Sizes that differ from each other, so that swapped axes show; no chunk of 2 divides the batch.
BATCH = 3
SMALL = {
    "batch_jacobian": {"features": 4, "hidden": 3, "outputs": 2},
    "dp_sgd": {"features": 4, "hidden": 3},
    "attention": {"length": 6, "width": 8},
    "gradient_through_map": {"width": 7, "steps": 3},
    "matmul_chain": {"side": 4, "products": 3},
    "pixel_loop": {"height": 1, "width": 2},
    "python_sum": {"terms": 6},
    "random": {"draws": 2},
    "repeat_sum": {"repeats": 9},
    "top_k": {"width": 16, "k": 3},
    # Of three elements, the two of a chunk happen to be equally long.
    "variable_shape": {"batch": 5},
}
# Of an error's message, what the table keeps: further on there are names of ops, which depend on the batch. Numbers of
# nodes differ from run to run.
REASON = 160
_NODE_NUMBER = re.compile(r" id:\d+")
# Strategies of a mapper that are in the table beside those with default options.
FURTHER = (
    "map_fn.graph?parallel_iterations=1",
    "map_fn.graph?parallel_iterations=32",
    "vectorized_map.graph?fallback_to_while_loop=false",
    "chunked.graph?chunk=2",
    "chunked.xla?chunk=2",
    "dataset.graph?jit_compile=true",
    "dataset_batched.graph?chunk=2",
    "loop_compiled.eager?jit_compile=true",
    "accumulate.graph?chunk=2",
)


@dataclass(frozen=True)
class Variant:
    """A workload with its options written as ``name=value``, or empty."""

    workload: str
    options: str = ""

    def __str__(self) -> str:
        return f"{self.workload} {self.options}".strip()

    @property
    def chosen(self) -> dict[str, str]:
        return dict([self.options.split("=")]) if self.options else {}

    def request(self, chosen: Sequence[str] = ()) -> dict[str, object]:
        """A comparison of the chosen strategies, or of all."""
        workload = workloads.get(self.workload)
        return {
            "workload": self.workload,
            "workload_options": self.chosen,
            "size": size(workload),
            "strategies": list(chosen) or slugs(workload.variant(self.chosen)),
        }


@dataclass(frozen=True)
class Row:
    """The outcome of a cell; ``warnings`` are the codes of its warnings, and ``reason`` the error's first words.
    ``onednn``: ``on`` or ``off`` where it is that of one of the two alone, else empty."""

    workload: str
    options: str
    strategy: str
    outcome: str
    warnings: str
    reason: str
    onednn: str = ""

    @property
    def variant(self) -> Variant:
        return Variant(self.workload, self.options)

    @property
    def cell(self) -> tuple[Variant, str]:
        return self.variant, self.strategy


def size(workload: Workload) -> dict[str, int]:
    chosen = {parameter.name: max(parameter.least, 3 + place) for place, parameter in enumerate(workload.sizes)}
    return {**chosen, "batch": BATCH, **SMALL.get(workload.slug, {})}


def slugs(workload: Workload) -> list[str]:
    offered = [strategy.slug for strategy in strategies.all_strategies(workload)]
    mappers = {slug.partition(".")[0] for slug in offered}
    return [*offered, *(slug for slug in FURTHER if slug.partition(".")[0] in mappers)]


def variants() -> list[Variant]:
    """Every workload, and every variant of it."""
    return [
        Variant(workload.slug, "".join(f"{name}={value}" for name, value in options.items()))
        for workload in workloads.all()
        for options in workload.choices()
    ]


def untimed(request: Request, launcher: Launcher, settings: Settings | None = None) -> Run:
    """The run of a comparison that ends where timing would begin: outcomes and warnings are all there."""
    settings = dataclasses.replace(settings or Settings(timeout_floor_s=RUN_S), bound_s=HOUR_S)
    comparison = Comparison("0" * 24, request, launcher, lambda view: None, settings=settings)
    with comparison.opened():
        comparison.look_at_values()
    return comparison.close("interrupted", "outcomes are known")


def digest(variant: Variant, strategies_: Iterable[str]) -> str:
    """The digest of a variant's inputs and scripts of these strategies, each in one of its modes, and of
    TensorFlow's and NumPy's versions. How strategies are run and checked by `measure` is not in it."""
    case = case_of(parse(variant.request()))
    in_one_mode = {slug.replace(f".{strategies.parse(slug).mode}", ""): slug for slug in strategies_}
    # What measures memory and checks values has a pool whatever the script says.
    scripts = {slug: script.build(case, slug, allocator="default") for slug in in_one_mode.values()}
    versions = [version("tensorflow"), version("numpy")]
    told = [versions, script.build_reference(case), scripts, case.cost.depth]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


def digests() -> dict[str, str]:
    """Variant → digest of what the table was measured of."""
    return dict(json.loads(SOURCES.read_text(encoding="utf-8")))


def row(variant: Variant, item: Measurement) -> Row:
    codes = sorted({warning.code for warning in item.warnings} - {"chosen"})
    reason = ""
    if item.error is not None and item.outcome != "wrong":
        reason = f"{item.error.type}: {_NODE_NUMBER.sub('', item.error.message)}".partition(" for '=")[0][:REASON]
    elif item.error is not None:
        reason = "WrongValues"
    outcome = "ok" if item.correctness is not None and item.correctness.ok and item.memory is not None else item.outcome
    return Row(variant.workload, variant.options, item.strategy, outcome, " ".join(codes), reason)


def measured(launcher: Launcher, variant: Variant, chosen: Sequence[str] = ()) -> list[Row]:
    """Return what becomes of the chosen cells of the variant, or of every one."""
    run = untimed(parse(variant.request(chosen)), launcher)
    return [row(variant, item) for item in run.measurements]


def of_cell(now: Row, before: Row | None) -> list[Row]:
    """The rows of a cell that is measured now. ``before``: its row for oneDNN on a processor with AVX-512, which is
    kept where this machine does not show it."""
    if before is None:
        return [now]
    words = " ".join(word for word in before.warnings.split() if word != "onednn")
    return [before, dataclasses.replace(before, outcome="ok", reason="", warnings=words, onednn="off")]


def read() -> list[Row]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [Row(**fields) for fields in csv.DictReader(file)]


def of_variant(variant: Variant, rows: Iterable[Row]) -> list[str]:
    """The strategies that a table has of a variant."""
    return list(dict.fromkeys(row.strategy for row in rows if row.variant == variant))


def write(rows: list[Row], chosen: list[Variant]) -> None:
    """Write the table of these rows, of which those of the chosen variants were measured now."""
    known = digests() | {str(variant): digest(variant, of_variant(variant, rows)) for variant in chosen}
    ordered = {str(each): known[str(each)] for each in variants() if str(each) in known}
    SOURCES.write_text(json.dumps(ordered, indent=1) + "\n", "utf-8")
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, Row.__dataclass_fields__, lineterminator="\n")
        writer.writeheader()
        writer.writerows(vars(each) for each in rows)
    DOCUMENT.write_text(document(rows), encoding="utf-8")


HEAD = """# What works

Every workload × mapper × mode on a CPU, a few elements, float32, with TensorFlow 2.21. The table is made
by `python -m tests.grid --write`, and a test holds the project to it.

✓ right · ≠ other values · ✗ an error · – known not to work

Where a note says so, an outcome is that with oneDNN on a processor with AVX-512: without one of the two it
is ✓. TensorFlow turns oneDNN on by itself on some processors alone, and TF_ENABLE_ONEDNN_OPTS sets it.
"""
MARKS = {"ok": "✓", "wrong": "≠", "failed": "✗", "unsupported": "–", "out_of_memory": "M", "timeout": "T"}


def document(rows: list[Row]) -> str:
    """The table for people: a block for each workload, one line a mapper, then the reasons."""
    blocks = [HEAD]
    for variant, cells in itertools.groupby((each for each in rows if each.onednn != "off"), lambda row: row.variant):
        lines = [f"## {variant}", "", workloads.get(variant.workload).summary, ""]
        lines += ["| strategy | eager | graph | xla |", "|---|---|---|---|"]
        notes: dict[str, int] = {}
        marks: dict[tuple[str, str], dict[str, str]] = {}
        for cell in cells:
            strategy, options = strategies.parse(cell.strategy), cell.strategy.partition("?")[2]
            number = notes.setdefault(note, len(notes) + 1) if (note := said(cell)) else ""
            marks.setdefault((strategy.mapper, options), {})[strategy.mode] = f"{MARKS[cell.outcome]} {number}".rstrip()
        for (mapper, options), by_mode in marks.items():
            modes = " | ".join(by_mode.get(mode, " ") for mode in ("eager", "graph", "xla"))
            lines.append(f"| {f'`{mapper}` {options}'.rstrip()} | {modes} |")
        lines += ["", *(f"{number}. {sentence}" for sentence, number in notes.items()), *([""] if notes else [])]
        blocks.append("\n".join(lines))
    return "\n".join(blocks).rstrip("\n") + "\n"


def said(cell: Row) -> str:
    """Return what there is to say of a cell beyond its mark; empty where it is as expected."""
    parts = ["other values than the reference" if cell.outcome == "wrong" else cell.reason.replace("|", "\\|")]
    if "onednn" in cell.warnings.split():
        parts.append("with oneDNN and AVX-512; right with TF_ENABLE_ONEDNN_OPTS=0")
    if "falls_back" in cell.warnings.split():
        parts.append("falls back to a while loop")
    return "; ".join(filter(None, parts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", help="only these")
    parser.add_argument("--write", action="store_true", help="rewrite the table and the document")
    arguments = parser.parse_args()
    os.environ["MAPBENCH_HOSTED"] = "1"  # the project's own files only
    chosen = [variant for variant in variants() if not arguments.workloads or variant.workload in arguments.workloads]
    table = read()
    rows = [each for each in table if each.variant not in chosen]
    with_onednn = {each.cell: each for each in table if each.onednn == "on"}
    with running_host() as launcher:
        for variant in chosen:
            for each in measured(launcher, variant):
                rows += of_cell(each, with_onednn.get(each.cell))
                print(*vars(each).values(), sep=" | ", flush=True)
    if arguments.write:
        order = {variant: place for place, variant in enumerate(variants())}
        write(sorted(rows, key=lambda each: order[each.variant]), chosen)


if __name__ == "__main__":
    main()
