"""Probes: the quickest way to each rate, and that they run."""

import threading
from typing import Any

import msgspec
import pytest

from measure.model.roofline import Work
from measure.subject import probes


class Told:
    """A clock that makes each call once, and says of it what it is told to say."""

    def __init__(self, *seconds: float) -> None:
        self._seconds = list(seconds)

    def least_s(self, ways: Any, budget_s: float) -> float:
        for way in ways:
            way()
        return self._seconds.pop(0)


@pytest.mark.parametrize(("together_s", "rate"), [(1.25e-3, 3 * 10 / 1.25e-3), (0.1, 1 / 1e-4)])
def test_numpy_computes_a_function_on_all_threads_or_on_one_whichever_is_quicker(
    together_s: float, rate: float
) -> None:
    calls: dict[int, list[str]] = {}

    def ufunc(array: Any, out: Any) -> None:
        calls.setdefault(id(out), []).append(threading.current_thread().name)

    found = probes.by_numpy(ufunc, "float32", 3, Told(1e-4, together_s))
    assert found == pytest.approx(2**15 * rate)
    # Each thread has numbers of its own, and a millisecond's work; the first call is that of one thread.
    assert sorted(map(len, calls.values())) == [10, 10, 11]
    assert {name for names in calls.values() for name in names} - {threading.current_thread().name}


def test_probes_find_a_rate_for_all_that_a_case_asks_of_them(tf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes.Stopwatch, "least_s", lambda clock, ways, budget_s: Told(0.02).least_s(ways, budget_s))
    for reads, writes, dtype, functions in (
        (4096, 4096, "float32", set()),
        (2**20, 10, "uint8", {"sin", "cos", "sqrt"}),
        (10, 2**20, "bfloat16", {"tanh"}),
    ):
        raw = {"read_bytes": reads, "written_bytes": writes, "flops": 1, "dtype": dtype}
        work = msgspec.convert(raw | {"functions": dict.fromkeys(functions, 1)}, Work)
        rates = probes.measure(work, "CPU:0", lambda: None)
        assert set(rates.functions_per_s) == functions
        assert (rates.read_bytes_per_s is not None, rates.write_bytes_per_s is not None) == (
            reads > writes,
            reads < writes,
        )
        assert min(rates.copy_bytes_per_s, rates.flops_per_s, *rates.functions_per_s.values()) > 0
        assert rates.op_s == rates.call_s == 0.02
