"""Each element changes a variable and uses its value: only what goes one by one, in order, can be right."""

import numpy as np

from workloads.spec import Cost, Leaf, SizeParameter, Workload, tf


def inputs(batch, width, dtype, seed):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 1.0, size=(batch, width)).astype(dtype)


def zero(dtype):
    return (np.zeros((), dtype),)


def element(x, counter):
    return x * counter.assign_add(1)


def count_from_zero(mapped, x, counter):
    counter.assign(0)
    outputs = mapped(x)
    return outputs, counter.read_value()


def batched(x, counter):
    batch = tf.shape(x)[0]
    counter.assign(tf.cast(batch, x.dtype))
    return x * tf.cast(tf.range(1, batch + 1), x.dtype)[:, None], counter.read_value()


def reference(x, counter):
    places = np.arange(1, len(x) + 1, dtype=np.float64)
    return x.astype(np.float64) * places[:, None], np.float64(len(x)) + counter.astype(np.float64)


WORKLOAD = Workload(
    title="Counter in a variable",
    group="Limits",
    formula="y[b] = x[b] · (b + 1), where a variable counts b",
    sizes=(
        SizeParameter("batch", 100, 0, 100_000, "rows in the batch, the mapped axis"),
        SizeParameter("width", 8, 1, 65_536, "numbers in a row"),
    ),
    presets={"Small": (10, 8), "Medium": (100, 8)},
    inputs=inputs,
    element=element,
    use=count_from_zero,
    rewrites={"batched": batched},
    reference=reference,
    element_input=lambda width, dtype: Leaf((width,), dtype),
    output=lambda batch, width, dtype: (Leaf((batch, width), dtype), Leaf((), dtype)),
    cost=lambda: Cost(ops=3),
    variables=zero,
    variable_leaves=lambda dtype: (Leaf((), dtype),),
)
