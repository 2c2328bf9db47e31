"""The condition of a function, which its tolerances grow with."""

from typing import Any

import numpy as np
import pytest

from measure.subject.conditioning import condition
from workloads import augment


def test_results_that_move_further_than_elements_are_allowed_as_much(tf: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(augment, "tf", tf, raising=False)
    rng = np.random.default_rng(1)
    numbers = tf.constant(rng.uniform(0.5, 1.5, 1_000).astype("float32"))
    image = tf.constant(rng.random((64, 64, 3), dtype="float32")), tf.constant(0.4)
    for function, element, least, most in (
        (tf.sqrt, numbers, 1, 1),
        (tf.round, numbers * 10, 1, 1),
        (lambda x: x * 2, tf.range(3), 1, 1),
        (tf.strings.as_string, numbers, 1, 1),
        (lambda x: x / 0.0, numbers, 1, 1),
        (lambda x: x**3, numbers, 2, 8),
        (augment.rotate, image, 10, 100),
        (lambda x: tf.sin(1e6 * x), numbers, 1_000, 1_000),
    ):
        assert least <= condition(function, element, function(element)) <= most, function
