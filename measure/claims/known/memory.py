"""Claims on the memory that ways of mapping take."""

from measure.claims.along import MemoryGrows
from measure.claims.known.order import IMAGES, REPEATS
from measure.claims.predicates import Figure, MoreMemory
from measure.claims.spec import Claim, Compare, Said, Script, Swept

_MAXIMA = Compare(
    "outer_reduce",
    ("map_fn.eager", "map_fn.graph", "vectorized_map.graph", "vectorized_map.xla"),
    budget_s=3.0,
)
_REPEATS_ALONG = Swept(
    "repeat_sum",
    ("map_fn.graph", "vectorized_map.graph"),
    "batch",
    (100, 3200),
    size={"repeats": 10_000},
    budget_s=10.0,
)
# Beyond 32 MiB the C library maps each buffer for itself, and gives it back when it is freed.
_FAULTS = Script(
    """import os
import subprocess
import sys

CALLS = '''
import resource
import tensorflow as tf

@tf.function
def outer(x):
    return x[:, None] * x

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

x = tf.random.uniform([3200])
for _ in range(5):
    outer(x)
before = faults()
for _ in range(20):
    outer(x)
print((faults() - before) / 20 / (3200 * 3200 * 4 / resource.getpagesize()))
'''
for name, value in (("c_library", "false"), ("pool", "true")):
    env = os.environ | {"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": value}
    done = subprocess.run([sys.executable, "-c", CALLS], env=env, stdout=subprocess.PIPE, check=True)
    report(**{name: round(100 * float(done.stdout))})
""",
    seconds=12.0,
)

CLAIMS = (
    Claim(
        id="vectorized_map_needs_more_memory",
        question="memory",
        sentence="`tf.vectorized_map` needs more memory than `tf.map_fn`.",
        said=(Said("seed 5", "possibly a much larger memory footprint"),),
        tests=(
            MoreMemory(_MAXIMA, "vectorized_map.graph", "map_fn.graph", 2.0, when="large intermediate tensors"),
            MoreMemory(IMAGES, "vectorized_map.graph", "map_fn.graph", when="no intermediate tensors"),
        ),
        note="`tf.map_fn` holds all results twice while it stacks them.",
    ),
    Claim(
        id="map_fn_intermediates_pile_up",
        question="memory",
        sentence="Intermediate tensors of `tf.map_fn` pile up with the number of elements.",
        said=(
            Said("seed 4", "memory escalates with large data"),
            Said("seed 4", "retention of intermediate tensors"),
            Said("seed 4", "they accumulate"),
        ),
        tests=(MemoryGrows(_REPEATS_ALONG, "map_fn.graph", least=0.85),),
        note="In a graph some are there at once, those of as many elements as are in work: ten by default.",
    ),
    Claim(
        id="vectorized_intermediates_pile_up",
        question="memory",
        sentence="Intermediate tensors of `tf.vectorized_map` grow in proportion to the batch.",
        said=(Said("seed 5", "possibly a much larger memory footprint"),),
        tests=(MemoryGrows(_REPEATS_ALONG, "vectorized_map.graph", least=0.9, most=1.1),),
    ),
    Claim(
        id="fewer_tensors_less_memory",
        question="memory",
        sentence="A function that makes no large intermediate tensor takes less memory for the same result.",
        said=(Said("seed 4", "minimizing tensor creation"),),
        tests=(MoreMemory(REPEATS, "vectorized_map.graph", "batched.graph", 2.0),),
    ),
    Claim(
        id="graphs_need_less_memory",
        question="memory",
        sentence="`tf.map_fn` in a `tf.function` needs less memory than eager.",
        said=(Said("seed 4", "on example 3, savings by graphs"),),
        tests=(
            MoreMemory(_MAXIMA, "map_fn.eager", "map_fn.graph", when="large intermediate tensors"),
            MoreMemory(IMAGES, "map_fn.eager", "map_fn.graph", when="no intermediate tensors"),
        ),
    ),
    Claim(
        id="xla_needs_less_memory",
        question="memory",
        sentence="`jit_compile=True` lowers the peak of memory.",
        said=(Said("seed 4", "on example 3, XLA"), Said("seed 4", "the solution, built-in optimization")),
        tests=(
            MoreMemory(REPEATS, "map_fn.graph", "map_fn.xla", when="`tf.map_fn` of repeated numbers"),
            MoreMemory(REPEATS, "vectorized_map.graph", "vectorized_map.xla", when="`tf.vectorized_map` of the same"),
            MoreMemory(_MAXIMA, "vectorized_map.graph", "vectorized_map.xla", when="and of maxima of products"),
        ),
    ),
    Claim(
        id="c_library_fetches_pages_anew",
        question="memory",
        sentence="With the C library's allocator every call of a graph takes a page fault for each page of a large "
        "output; TensorFlow's pool avoids that.",
        said=(Said("thread", "https://github.com/tensorflow/tensorflow/issues/12898"),),
        tests=(
            Figure(_FAULTS, "c_library", "with it a call faults on {value} % of the pages of 39 MiB", least=90),
            Figure(_FAULTS, "pool", "with the pool on {value} %", most=1),
        ),
        needs_linux=True,
        note="Where oneDNN is on, as it is on newer CPUs, TensorFlow has a pool without that variable.",
    ),
)
