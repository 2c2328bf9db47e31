"""Claims on how long the tensors of a mapped function live, and what ends their lives."""

from measure.claims.predicates import Figure
from measure.claims.spec import Claim, Said, Script

_ALIVE = Script(
    """import weakref
import tensorflow as tf

made, at_return, kept = [], [], []

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

def keeping(x):
    kept.append(large := repeated(x))
    return tf.reduce_sum(large)

def size(f):
    graph = tf.function(lambda x: tf.map_fn(f, x)).get_concrete_function(x).graph
    return sum(len(function.node_def) for function in graph.as_graph_def().library.function)

x = tf.range(50.0)
for f in (plain, deleting, checking, keeping):
    made.clear()
    at_return.clear()
    tf.map_fn(f, x)
    report(**{f.__name__: max(at_return, default=0), f"{f.__name__}_after": alive()})
report(fewer_ops_deleting=size(plain) - size(deleting), more_ops_checking=size(checking) - size(plain))
""",
    seconds=10.0,
)

_PIPELINE = Script(
    """import tensorflow as tf

def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def f(x):
    return tf.reduce_sum(tf.repeat(x, 250_000))

rows = []
for row in tf.data.Dataset.range(600).map(f):
    rows.append(resident_bytes())
report(grown_mib=(rows[-1] - rows[50]) / 2**20)
""",
    seconds=6.0,
)

_CACHE = Script(
    """import tensorflow as tf

calls = []

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
    report(**{f"calls_{name}": len(calls), f"grown_mib_{name}": (resident_bytes() - before) / 2**20})
""",
    seconds=8.0,
)

CLAIMS = (
    Claim(
        id="intermediates_outlive_the_function",
        question="memory",
        sentence="Intermediate tensors of a mapped function stay in memory after its end unless they are deleted.",
        said=(Said("seed 4", "if these tensors are not explicitly released"), Said("seed 4", "on example 1")),
        tests=(Figure(_ALIVE, "plain_after", "{value} of 50 are left, eager and without `del`", least=1),),
    ),
    Claim(
        id="intermediate_lives_to_the_end",
        question="memory",
        sentence="Eager, an intermediate tensor lives until the mapped function returns.",
        said=(Said("seed 4", "on example 1, until the function completes"),),
        tests=(Figure(_ALIVE, "plain", "alive at the return: {value}", least=1, most=1),),
    ),
    Claim(
        id="del_frees_at_once",
        question="memory",
        sentence="`del` in the mapped function frees an intermediate tensor at once.",
        said=(Said("seed 4", "on example 2"),),
        tests=(
            Figure(_ALIVE, "deleting", "alive at the return: {value}", most=0, when="eager"),
            Figure(_ALIVE, "fewer_ops_deleting", "ops that `del` changes: {value}", least=1, when="in a graph"),
        ),
        note="`Dataset.map` makes a graph too: there `del` takes a Python name away, and nothing from memory.",
    ),
    Claim(
        id="references_keep_tensors",
        question="memory",
        sentence="Intermediate tensors that something outside still refers to stay in memory.",
        said=(Said("seed 4", "not referenced beyond their immediate need"), Said("seed 4", "garbage collection")),
        tests=(Figure(_ALIVE, "keeping_after", "{value} of 50 are left", least=50),),
    ),
    Claim(
        id="check_numerics_frees",
        question="memory",
        sentence="`tf.debugging.check_numerics` helps to free intermediate tensors.",
        said=(Said("seed 4", "managing memory with `check_numerics`"),),
        tests=(
            Figure(_ALIVE, "checking", "alive at the return, eager: {value}", most=0),
            Figure(_ALIVE, "more_ops_checking", "ops that it adds to a graph: {value}", most=-1),
        ),
        note="It fails on NaN and on infinities, and does nothing else.",
    ),
    Claim(
        id="pipeline_piles_up",
        question="memory",
        sentence="Large intermediate tensors of a `Dataset.map` pile up from element to element.",
        said=(Said("seed 4", "on example 1, accumulates rapidly"),),
        tests=(Figure(_PIPELINE, "grown_mib", "{value} MiB more after 550 elements of 2 MB", least=50),),
        needs_linux=True,
    ),
    Claim(
        id="cache_takes_memory",
        question="memory",
        sentence="`Dataset.cache` keeps all results in memory and calls the function once for each element.",
        said=(Said("seed 4", "caching of `tf.data`"),),
        tests=(
            Figure(_CACHE, "calls_cached", "{value} calls for twice 50 elements", most=50),
            Figure(_CACHE, "calls_plain", "{value} without it", least=100),
            Figure(_CACHE, "grown_mib_cached", "{value} MiB more", least=45),
        ),
        needs_linux=True,
    ),
)
