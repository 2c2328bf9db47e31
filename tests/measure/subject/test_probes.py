"""Probes: they run, and move bytes as the case does."""

from collections.abc import Callable
from typing import Any

import pytest

from measure.model.roofline import Work
from measure.subject import probes


@pytest.mark.parametrize(
    ("reads", "writes", "dtype", "way"),
    [(4096, 4096, "float32", "negative"), (2**20, 10, "uint8", "reduce_sum"), (10, 2**20, "bfloat16", "fill")],
)
def test_probes_find_each_rate_by_reading_writing_or_copying_as_the_case_does(
    tf: Any, monkeypatch: pytest.MonkeyPatch, reads: int, writes: int, dtype: str, way: str
) -> None:
    calls: list[str] = []
    took_s = iter([0.5e-6, 2e-6, 1e-6, 1e-2, 3e-6, 4e-6])

    def least_s(call: Callable[[], Any], *of: Any) -> float:
        calls.clear()
        call()
        called.append(list(calls))
        return next(took_s)

    called: list[list[str]] = []
    for name in ("negative", "reduce_sum", "fill", "ones"):
        function = getattr(tf, name)
        wrapped = lambda *of, name=name, function=function: (calls.append(name), function(*of))[1]  # noqa: E731
        monkeypatch.setattr(tf, name, wrapped)
    monkeypatch.setattr(probes, "least_s", least_s)
    rates = probes.measure(Work(read_bytes=reads, written_bytes=writes, flops=1, dtype=dtype), "CPU:0", lambda: None)
    assert called[0] == [way] and called[1:3] == [[], []], "by TensorFlow, and by NumPy on one thread and on all"
    assert rates.bytes_per_s == pytest.approx((reads + writes) / 0.5e-6, rel=0.01)
    assert rates.flops_per_s == pytest.approx(2 * probes.SIDES[0] ** 3 / 1e-2)
    assert (rates.op_s, rates.call_s) == (3e-6, 4e-6)
