"""Claims on what needs memory, and on how long the tensors of a mapped function live."""

from measure.claims.known.needs import IMAGES, REPEATS
from measure.claims.predicates import Figure, MoreMemory
from measure.claims.spec import Compare, Script, claim

_M, _V = "map_fn.graph", "vectorized_map.graph"
_MAXIMA = Compare("outer_reduce", ("map_fn.eager", _M, _V, "vectorized_map.xla"), budget_s=30.0)
_IN_FLIGHT = Compare(
    "outer_reduce", (f"{_M}?parallel_iterations=1", f"{_M}?parallel_iterations=32"), {"batch": 32, "side": 32}
)

_LIVES = Script(
    """import weakref
import tensorflow as tf

made, at_return, stored, calls = [], [], [], []

def alive():
    return sum(one() is not None for one in made)

def repeated(x):
    large = tf.repeat(x, 10_000)
    made.append(weakref.ref(large))
    return large

def plain(x):
    total = tf.reduce_sum(large := repeated(x))
    at_return.append(alive())
    return total

def deleting(x):
    large = repeated(x)
    total = tf.reduce_sum(large)
    del large
    at_return.append(alive())
    return total

def checking(x):
    large = repeated(x)
    total = tf.reduce_sum(tf.debugging.check_numerics(large, "no number"))
    at_return.append(alive())
    return total

def storing(x):
    stored.append(large := repeated(x))
    return tf.reduce_sum(large)

def ops(f):
    graph = tf.function(lambda x: tf.map_fn(f, x)).get_concrete_function(x).graph
    return sum(len(function.node_def) for function in graph.as_graph_def().library.function)

x = tf.range(50.0)
for f in (plain, deleting, checking, storing):
    made.clear()
    at_return.clear()
    tf.map_fn(f, x)
    report(**{f.__name__: max(at_return, default=0), f"{f.__name__}_after": alive()})
report(ops_deleting=ops(plain) - ops(deleting), ops_checking=ops(checking) - ops(plain))

def count(x):
    calls.append(1)
    return x

def f(x):
    return tf.repeat(tf.numpy_function(count, [x], x.dtype), 250_000)

def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

for name, end in (("plain", lambda dataset: dataset), ("cached", lambda dataset: dataset.cache())):
    calls.clear()
    dataset, before = end(tf.data.Dataset.range(50).map(f)), resident_bytes()
    for _ in range(2):
        for row in dataset:
            pass
    report(**{f"calls_{name}": len(calls), f"mib_{name}": round((resident_bytes() - before) / 2**20)})
""",
    seconds=12.0,
)

CLAIMS = (
    claim(
        "vectorized_map_needs_more_memory", "memory", ("seed 5",),
        "`tf.vectorized_map` needs more memory than `tf.map_fn`.",
        MoreMemory(_MAXIMA, _V, _M, 2, "large intermediate tensors"),
        MoreMemory(IMAGES, _V, _M, when="no intermediate tensors"),
        advice="It holds intermediate tensors of all elements, and `tf.map_fn` all results twice while it stacks them.",
    ),
    claim(
        "intermediates_pile_up", "memory", ("seed 4", "seed 5"),
        "Intermediate tensors pile up with the number of elements.",
        MoreMemory(REPEATS, _M, _V, 0.5, "`tf.map_fn`, against all of them at once"),
        MoreMemory(REPEATS, "dataset.graph", _V, 0.5, "`Dataset.map`"),
        MoreMemory(REPEATS, _V, "batched.graph", 100, "`tf.vectorized_map`, against none of them"),
        advice="A map in a graph holds those of as many elements as are in work: ten by default.",
    ),
    claim(
        "fewer_tensors_less_memory", "memory", ("seed 4",),
        "A function that makes no large intermediate tensor takes less memory for the same result.",
        MoreMemory(REPEATS, _V, "batched.graph", 2),
    ),
    claim(
        "graphs_need_less_memory", "memory", ("seed 4",),
        "`tf.map_fn` in a `tf.function` needs less memory than eager.",
        MoreMemory(_MAXIMA, "map_fn.eager", _M, when="large intermediate tensors"),
        MoreMemory(IMAGES, "map_fn.eager", _M, when="no intermediate tensors"),
        advice="Eager, one element is in work at a time, and in a graph ten.",
    ),
    claim(
        "xla_needs_less_memory", "memory", ("seed 4",), "`jit_compile=True` lowers the peak of memory.",
        MoreMemory(REPEATS, _M, "map_fn.xla", when="`tf.map_fn` of repeated numbers"),
        MoreMemory(REPEATS, _V, "vectorized_map.xla", when="`tf.vectorized_map` of the same"),
        MoreMemory(_MAXIMA, _V, "vectorized_map.xla", when="`tf.vectorized_map` of maxima of products"),
        advice="It fuses what is made with what uses it, so that large tensors in between are never made.",
    ),
    claim(
        "parallel_iterations_take_memory", "memory", ("https://www.tensorflow.org/api_docs/python/tf/while_loop",),
        "In a graph, large intermediate tensors need more memory the more `parallel_iterations` there are.",
        MoreMemory(_IN_FLIGHT, f"{_M}?parallel_iterations=32", f"{_M}?parallel_iterations=1", 1.4),
        advice="Lower it where memory is short.",
    ),
    claim(
        "intermediates_outlive_the_function", "memory", ("seed 4",),
        "Intermediate tensors of a mapped function stay in memory after its end unless they are deleted.",
        Figure(_LIVES, "plain_after", "{value} of 50 tensors are left", 50, when="nothing refers to them"),
        Figure(_LIVES, "storing_after", "{value} of 50 tensors are left", 50, when="a list refers to them"),
        advice="Keep no references to them.",
    ),
    claim(
        "del_frees_at_once", "memory", ("seed 4",),
        "An intermediate tensor lives until the mapped function returns; `del` frees it at once.",
        Figure(_LIVES, "plain", "without `del`, {value} tensor is left at the return", 1, 1, "eager"),
        Figure(_LIVES, "deleting", "with it {value}", 0, 0, "eager"),
        Figure(_LIVES, "ops_deleting", "`del` takes {value} ops away", 1, when="in a graph"),
        advice="In a graph, and in `Dataset.map` too, `del` takes a Python name away, and nothing from memory.",
    ),
    claim(
        "check_numerics_frees", "memory", ("seed 4",),
        "`tf.debugging.check_numerics` helps to free intermediate tensors.",
        Figure(_LIVES, "checking", "with it, {value} tensor is left at the return", most=0),
        advice="It fails on NaN and on infinities, and does nothing else; in a graph it is one more op.",
    ),
    claim(
        "cache_takes_memory", "memory", ("seed 4",),
        "`Dataset.cache` keeps all results in memory and calls the function once for each element.",
        Figure(_LIVES, "calls_cached", "50 elements, gone through twice, take {value} calls with it", most=50),
        Figure(_LIVES, "calls_plain", "{value} without it", 100),
        Figure(_LIVES, "mib_cached", "100 MB of results take {value} MiB", 45),
        advice="Cache what is small and dear, and before what makes it large.", needs_linux=True,
    ),
)  # fmt: skip
