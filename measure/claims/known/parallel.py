"""Claims on ``parallel_iterations``."""

from measure.claims.known.python_loops import IN_TURNS
from measure.claims.predicates import AsQuick, Figure, MoreMemory
from measure.claims.spec import Claim, Compare, Said, Script

_WAYS = Script(
    IN_TURNS
    + """import re

def squared(x):
    return tf.matmul(x, x)

def mapped(x, parallel):
    return tf.map_fn(squared, x, parallel_iterations=parallel)

def program(parallel):
    compiled = tf.function(lambda x: mapped(x, parallel), jit_compile=True)
    text = compiled.experimental_get_compiler_ir(x)(stage="optimized_hlo")
    # Functions are numbered as they are made.
    return re.sub("[0-9]+__?", "", text)

x = tf.random.uniform([100, 16, 16])
report(programs=len({program(1), program(10)}))
report(**in_turns(15, with_1=lambda: mapped(x, 1), with_10=lambda: mapped(x, 10)))
""",
    seconds=12.0,
)

_MEMORY = Compare(
    "outer_reduce",
    ("map_fn.graph?parallel_iterations=1", "map_fn.graph?parallel_iterations=32"),
    size={"batch": 32, "side": 32},
    budget_s=3.0,
)

CLAIMS = (
    Claim(
        id="parallel_iterations_ignored",
        question="speed",
        sentence="Eager and under XLA, `tf.map_fn` takes the same time whatever `parallel_iterations` is.",
        said=(
            Said("thread", "https://github.com/tensorflow/tensorflow/issues/54470"),
            Said("thread", "https://github.com/tensorflow/tensorflow/issues/34716"),
        ),
        tests=(
            AsQuick(_WAYS, "with_1", "with_10", within=0.5, when="eager"),
            Figure(_WAYS, "programs", "{value} program for 1 and 10 iterations", most=1, when="under XLA"),
        ),
    ),
    Claim(
        id="parallel_iterations_take_memory",
        question="memory",
        sentence="In a graph, large intermediate tensors need more memory the more `parallel_iterations` there are.",
        said=(Said("documentation", "https://www.tensorflow.org/api_docs/python/tf/while_loop"),),
        tests=(
            MoreMemory(_MEMORY, "map_fn.graph?parallel_iterations=32", "map_fn.graph?parallel_iterations=1", by=1.4),
        ),
    ),
)
