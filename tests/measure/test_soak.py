"""Thirty forks of one host: what its subjects use starts threads, compilers and pools of their own."""

import collections
import pickle
from pathlib import Path

import numpy as np
import pytest

from measure.engine.host_launcher import HostLauncher
from measure.subject.messages import Spec
from tests.engine import talk
from workloads.spec import Leaf

FORKS = 30

_HEAD = "import numpy as np\nimport tensorflow as tf\n\n\nelems = tf.reshape(tf.range(256.0), [16, 16])\n\n\n"

# What a strategy may be made of; each returns twice its input, so that its values can be checked.
SCRIPTS = {
    "xla": """
@tf.function(jit_compile=True)
def strategy(elems):
    return tf.linalg.matmul(elems, 2.0 * tf.eye(16))
""",
    "tf.data": """
def strategy(elems):
    rows = tf.data.Dataset.from_tensor_slices(elems)
    rows = rows.map(lambda row: row * 2.0, num_parallel_calls=4).prefetch(2).batch(16)
    return next(iter(rows))
""",
    "parallel graph": """
@tf.function
def strategy(elems):
    return tf.map_fn(lambda row: row * 2.0, elems, parallel_iterations=8)
""",
    "vectorized": """
@tf.function(jit_compile=True)
def strategy(elems):
    return tf.vectorized_map(lambda row: row * 2.0, elems)
""",
    "keras": """
layer = tf.keras.layers.Dense(16, use_bias=False, kernel_initializer=tf.keras.initializers.Identity(2.0))


@tf.function
def strategy(elems):
    return layer(elems)
""",
    "numpy": """
def strategy(elems):
    large = np.ones([384, 384], np.float32)
    assert (large @ large)[0, 0] == 384.0
    return tf.constant(elems.numpy() @ (2.0 * np.eye(16, dtype=np.float32)))
""",
}
SHARES = {"xla": 6, "tf.data": 6, "parallel graph": 5, "vectorized": 4, "keras": 3, "numpy": 6}


@pytest.fixture
def case_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "case"
    folder.mkdir()
    np.save(folder / "reference_0.npy", 2.0 * np.arange(256.0).reshape(16, 16))
    (folder / "reference.pickle").write_bytes(pickle.dumps("reference_0.npy"))
    (folder / "expected.pickle").write_bytes(pickle.dumps(Leaf((16, 16), "float32")))
    return folder


def test_forks_of_one_host_all_work_and_none_hangs(host: HostLauncher, case_dir: Path):
    """Half of them are profiled, and their values checked; the other half are timed."""
    kinds = [kind for kind, share in SHARES.items() for _ in range(share)]
    specs = [
        Spec(
            role=("memory", "timing")[number % 2],
            name=f"{kind} {number}",
            script=_HEAD + SCRIPTS[kind],
            mode="xla" if "jit_compile" in SCRIPTS[kind] else "eager",
            case_dir=str(case_dir),
            depth=16,
        )
        for number, kind in enumerate(kinds)
    ]
    assert len(specs) == FORKS
    # Neighbours are of different kinds, in an order that is the same every time.
    specs = [specs[index] for index in np.random.default_rng(0).permutation(FORKS)]
    talks = talk(host, specs, at_once=4)
    failed = [
        (one.spec.name, one.spec.role, one.exit, one.messages[-1:])
        for one in talks
        if one.exit is None or one.exit.get("status") != 0 or "error" in one.said
    ]
    assert not failed
    ends = collections.Counter(one.said[-1] for one in talks)
    assert ends == {"rough": FORKS / 2, "sampled": FORKS / 2}
    checks = [message for one in talks for message in one.messages if message["event"] == "checked"]
    assert len(checks) == FORKS / 2 and all(check["correctness"]["ok"] for check in checks)
    peaks = {one.spec.name.partition(" ")[0]: one.messages[-2]["memory"] for one in talks if one.said[-2] == "memory"}
    assert peaks and all(peak["output_bytes"] == 1024 and peak["method"] == "events" for peak in peaks.values())
