"""`chunked` and `while_loop` give what `loop` gives, whatever the shapes, dtypes, nests and chunk sizes."""

from typing import Any

import numpy as np
import pytest

from strategies import chunked, loop, while_loop

# Batch, shape of an element, dtype, chunk, name of the function, whether XLA compiles it.
CASES = [
    (0, [2], "float32", 1, "nested", False),
    (0, [2], "float32", 3, "of_one", True),
    (1, [2], "float32", 1, "nested", False),
    (7, [2], "float32", 2, "nested", True),
    (7, [], "int64", 7, "compared", False),
    (7, [3, 0], "float16", 8, "of_one", False),
    (7, [1, 3], "bfloat16", 3, "nested", False),
    (6, [2], "int32", 3, "compared", True),
]


@pytest.mark.parametrize("case", CASES)
def test_chunks_and_loops_agree(tf: Any, monkeypatch: pytest.MonkeyPatch, case: tuple[Any, ...]) -> None:
    batch, shape, dtype, chunk, name, jit = case

    def of_one(x):
        return x * 2

    def nested(x):
        return {"pair": (tf.cast(x, tf.float32), x), "sum": tf.reduce_sum(x)}

    def compared(x):
        return x > tf.zeros_like(x), tf.size(x)

    for module in (chunked, loop, while_loop):
        monkeypatch.setattr(module, "tf", tf, raising=False)
    fn = {"of_one": of_one, "nested": nested, "compared": compared}[name]
    rng = np.random.default_rng(batch * 31 + chunk)
    elems = tf.cast(tf.constant(rng.integers(-9, 9, size=[batch, *shape])), dtype)
    one = fn(elems[0] if batch else tf.zeros(shape, dtype))
    signature = tf.nest.map_structure(lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype), one)
    wanted = loop.map_with_loop(fn, elems, signature)
    for apply, options in ((chunked.map_in_chunks, {"chunk": chunk}), (while_loop.map_with_while_loop, {})):

        def strategy(elems, apply=apply, options=options):
            return apply(fn, elems, signature, **options)

        concrete = tf.function(strategy, jit_compile=jit).get_concrete_function(elems)
        tf.nest.assert_same_structure(concrete.structured_outputs, wanted)
        for leaf, right in zip(tf.nest.flatten(concrete(elems)), tf.nest.flatten(wanted), strict=True):
            assert leaf.dtype == right.dtype and leaf.shape == right.shape, apply
            assert np.array_equal(leaf.numpy(), right.numpy()), apply
        for spec, right in zip(tf.nest.flatten(concrete.structured_outputs), tf.nest.flatten(wanted), strict=True):
            assert spec.shape == right.shape and spec.dtype == right.dtype, apply
