"""Each element draws from a seed of its own: right is what NumPy's own Philox says, number by number."""

import numpy as np

from workloads.spec import Cost, Leaf, SizeParameter, Workload, tf


def inputs(batch, seed):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2**31 - 1, size=(batch, 2), dtype=np.int32)


def element(seed, *, draws):
    # XLA would choose another algorithm by itself. Even so, it makes its floats of other bits than TensorFlow's kernel.
    return tf.random.stateless_uniform([draws], seed, alg="philox")


def philox(counter, key):
    """Philox 4×32 with 10 rounds (Salmon and others, SC11, "Parallel random numbers: as easy as 1, 2, 3")."""
    low = np.uint64(0xFFFFFFFF)
    counter, key = counter.astype(np.uint64), key.astype(np.uint64)
    for _ in range(10):
        first = np.uint64(0xD2511F53) * counter[..., 0]
        second = np.uint64(0xCD9E8D57) * counter[..., 2]
        high_first, high_second = first >> np.uint64(32), second >> np.uint64(32)
        counter = np.stack(
            [
                high_second ^ counter[..., 1] ^ key[..., 0],
                second & low,
                high_first ^ counter[..., 3] ^ key[..., 1],
                first & low,
            ],
            axis=-1,
        )
        key = (key + np.array([0x9E3779B9, 0xBB67AE85], np.uint64)) & low
    return counter


def uniform(seeds, *, draws):
    """What tf.random.stateless_uniform draws: float32 from 0 to 1, ``draws`` for each pair of seeds."""
    zeros = np.zeros(seeds.shape[:-1], np.uint64)
    words = np.stack([seeds[..., 0].astype(np.uint64), zeros, seeds[..., 1].astype(np.uint64), zeros], axis=-1)
    # TensorFlow scrambles the seeds first, with a key of its own (tensorflow/core/kernels/stateless_random_ops.cc).
    mixed = philox(words, np.broadcast_to(np.array([0x3EC8F720, 0x02461E29], np.uint64), (*zeros.shape, 2)))
    blocks = -(-draws // 4)
    counter = np.zeros((*zeros.shape, blocks, 4), np.uint64)
    counter[..., 0] = np.arange(blocks, dtype=np.uint64)
    counter[..., 2:] = mixed[..., None, 2:]
    bits = philox(counter, np.broadcast_to(mixed[..., None, :2], (*zeros.shape, blocks, 2)))
    bits = bits.reshape(*zeros.shape, 4 * blocks)[..., :draws]
    # 23 random bits as the fraction of a number from 1 to 2.
    return ((bits & np.uint64(0x7FFFFF)) | np.uint64(0x3F800000)).astype(np.uint32).view(np.float32) - np.float32(1)


WORKLOAD = Workload(
    title="Random numbers",
    group="Limits",
    formula="y[b] = draws uniform numbers from the seed x[b]",
    sizes=(
        SizeParameter("batch", 100, 0, 1_000_000, "seeds in the batch, the mapped axis"),
        SizeParameter("draws", 64, 1, 1_000_000, "numbers drawn for each"),
    ),
    presets={"Small": (10, 8), "Medium": (100, 64), "Many draws": (100, 100_000)},
    dtypes=("float32",),
    inputs=inputs,
    element=element,
    numpy=uniform,
    element_input=lambda: Leaf((2,), "int32"),
    element_output=lambda draws: Leaf((draws,), "float32"),
    # Ten rounds of some ten integer operations for four numbers.
    cost=lambda draws: Cost(flops=30 * draws, ops=6, temporary_bytes=32),
)
