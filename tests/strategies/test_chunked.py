"""`chunked` and `while_loop` give what `loop` gives, whatever the shapes, dtypes, nests and chunk sizes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as draw

from tests.warm import WarmPopen

ROOT = Path(__file__).parents[2]

# One process with TensorFlow for all examples: lines of JSON in, a line for each out.
WORKER = """
import inspect, json, sys
import numpy as np
import tensorflow as tf
from strategies import chunked, loop, while_loop

def texts(*functions):
    return "import tensorflow as tf\\n" + "\\n\\n".join(inspect.getsource(each) for each in functions)

exec(texts(chunked.map_in_chunks, loop.map_with_loop, while_loop.map_with_while_loop))

def of_one(x):
    return x["a"] * 2 if isinstance(x, dict) else x * 2

def nested(x):
    return {"pair": (tf.cast(x, tf.float32), x), "sum": tf.reduce_sum(x)}

def compared(x):
    return x > tf.zeros_like(x), tf.size(x)

FUNCTIONS = {"of_one": of_one, "nested": nested, "compared": compared}

def run(batch, shape, dtype, chunk, name, jit):
    rng = np.random.default_rng(batch * 31 + chunk)
    elems = tf.cast(tf.constant(rng.integers(-9, 9, size=[batch, *shape])), dtype)
    fn = FUNCTIONS[name]
    one = fn(elems[0] if batch else tf.zeros(shape, dtype))
    signature = tf.nest.map_structure(lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype), one)
    wanted = map_with_loop(fn, elems, signature)
    for apply, options in ((map_in_chunks, {"chunk": chunk}), (map_with_while_loop, {})):
        def strategy(elems):
            return apply(fn, elems, signature, **options)
        concrete = tf.function(strategy, jit_compile=jit).get_concrete_function(elems)
        tf.nest.assert_same_structure(concrete.structured_outputs, wanted)
        for spec, right in zip(tf.nest.flatten(concrete.structured_outputs), tf.nest.flatten(wanted)):
            assert spec.shape == right.shape and spec.dtype == right.dtype, (apply.__name__, spec, right.shape)
        got = concrete(elems)
        for leaf, right in zip(tf.nest.flatten(got), tf.nest.flatten(wanted)):
            assert leaf.dtype == right.dtype and leaf.shape == right.shape, (apply.__name__, leaf.shape, right.shape)
            assert np.array_equal(leaf.numpy(), right.numpy()), (apply.__name__, leaf, right)

for line in sys.stdin:
    try:
        run(**json.loads(line))
        print(json.dumps(None), flush=True)
    except Exception as error:
        print(json.dumps(f"{type(error).__name__}: {error}"[:2000]), flush=True)
"""


@pytest.fixture(scope="module")
def worker() -> Iterator[Any]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    with WarmPopen(
        [sys.executable, "-c", WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    ) as process:
        assert process.stdin is not None and process.stdout is not None

        def ask(**case: Any) -> str | None:
            process.stdin.write(json.dumps(case) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield ask
        process.stdin.close()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batch=draw.integers(0, 9),
    shape=draw.lists(draw.integers(0, 3), max_size=2),
    dtype=draw.sampled_from(["float32", "float16", "bfloat16", "int32", "int64"]),
    chunk=draw.integers(1, 11),
    name=draw.sampled_from(["of_one", "nested", "compared"]),
    jit=draw.booleans(),
)
def test_chunks_and_loops_agree(
    worker: Any, batch: int, shape: list[int], dtype: str, chunk: int, name: str, jit: bool
) -> None:
    assert worker(batch=batch, shape=shape, dtype=dtype, chunk=chunk, name=name, jit=jit) is None


@pytest.mark.parametrize(("batch", "chunk"), [(0, 1), (1, 1), (7, 2), (7, 7), (7, 8), (6, 3)])
@pytest.mark.parametrize("jit", [False, True])
def test_edges_agree(worker: Any, batch: int, chunk: int, jit: bool) -> None:
    assert worker(batch=batch, shape=[2], dtype="float32", chunk=chunk, name="nested", jit=jit) is None
