"""Random requests for tests of forms and addresses: comparisons, sweeps and maps of every workload, all valid."""

from typing import Any

from hypothesis import strategies as st

import strategies
import workloads
from measure.model.request import ALLOCATORS, MOST_BUDGET_S, MOST_SEED, MOST_THREADS
from measure.sweep.request import SCALES, SweepRequest, parse_sweep
from views.choices import sweep

# Above the inputs of any case below, which a limit must hold.
_LIMITS = (2**14, 2**24)


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """A comparison's request as a mapping, of small sizes: any of them can be asked for."""
    workload = draw(st.sampled_from(list(workloads.all())))
    options = {
        each.name: draw(
            st.sampled_from(each.values)
            if each.values is not None
            else st.integers(each.least or 0, 100 if each.most is None else each.most)
        )
        for each in workload.options
    }
    # An option may decide which rewrites a workload has.
    offered = [strategy.slug for strategy in strategies.all_strategies(workload.variant(options))]
    return {
        "workload": workload.slug,
        "size": {each.name: draw(st.integers(each.least, min(each.most, each.least + 9))) for each in workload.sizes},
        "workload_options": options,
        "dtype": draw(st.sampled_from(workload.dtypes)),
        "device": draw(st.sampled_from(["CPU:0", "GPU:0", "GPU:3"])),
        "strategies": draw(
            st.one_of(
                st.sampled_from([["default"], ["all"], ["map_fn.graph?parallel_iterations=3"]]),
                st.lists(st.sampled_from(offered), min_size=1, max_size=5, unique=True),
            )
        ),
        "budget_s": draw(st.one_of(st.floats(1.0, MOST_BUDGET_S), st.integers(1, 100).map(float))),
        "memory_limit_mib": draw(st.none() | st.integers(*_LIMITS)),
        "threads": draw(st.none() | st.integers(1, MOST_THREADS)),
        "seed": draw(st.integers(0, MOST_SEED)),
        "allocator": draw(st.sampled_from(ALLOCATORS)),
    }


@st.composite
def sweeps(draw: st.DrawFn) -> SweepRequest:
    """A sweep over one size, over two, or over an option."""
    raw = draw(requests())
    workload = workloads.get(raw["workload"])
    swept = sweep.sweepable(workload)
    sizes = [name for name, bounds in swept.items() if bounds.kind == "size"]
    names = draw(
        st.one_of(
            st.sampled_from(sizes).map(lambda name: [name]),
            st.sampled_from([["chunk"]]),
            *([st.permutations(sizes).map(lambda order: order[:2])] if len(sizes) > 1 else []),
        )
    )
    if names == ["chunk"]:
        raw["strategies"] = ["chunked.graph"]
    axes = []
    for name in names:
        first = draw(st.integers(max(1, swept[name].least), swept[name].least + 5))
        last = draw(st.integers(first + 1, first + 10))
        range_ = {"range": f"{first}:{last}", "points": draw(st.integers(2, 9))}
        listed = {"values": draw(st.lists(st.integers(first, last), min_size=2, max_size=5, unique=True))}
        axes.append(
            {"kind": swept[name].kind, "name": name, "scale": draw(st.sampled_from(SCALES)),
             **draw(st.sampled_from([range_, listed]))}
        )  # fmt: skip
    fixed = {name: value for name, value in raw["size"].items() if name not in names}
    return parse_sweep({**raw, "size": fixed, "axes": axes})
