"""Probes: the quickest way to each rate, and that they run."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from measure.subject import messages, probes
from tests import warm
from tests.measure.subject.test_memory import in_process


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


def test_on_one_thread_nothing_is_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "ThreadPoolExecutor", None)
    found = probes.by_numpy(lambda array, out: None, "float64", 1, Told(1e-4))
    assert found == pytest.approx(2**15 / 1e-4)


_ROOFS = """
    import tensorflow as tf
    from measure.subject import probes

    class Told:
        def __init__(self, quick):
            self._quick, self._asked = quick, 0

        def least_s(self, ways, budget_s):
            for way in ways:
                way()
            self._asked += 1
            return 0.5 if self._asked == self._quick else 1e3

    tf.config.threading.set_intra_op_parallelism_threads(1)
    program = probes.in_one_program(tf.math.exp)
    text = program.experimental_get_compiler_ir(tf.ones([64]))(stage="optimized_hlo")
    best = {
        dtype: [probes.function_rate("sin", dtype, Told(quick)) for quick in (1, 2, 3, 4)]
        for dtype in ("float32", "bfloat16")
    }
    result = {"in_program": text.count(" exponential("), "best": best}
"""


def test_the_roof_of_a_function_is_the_best_of_three_ways_to_it() -> None:
    found = in_process(_ROOFS)
    assert found["in_program"] == 4, "nothing of it is computed once for all"
    # By XLA's program, by TensorFlow's kernel for few numbers and for many, and by NumPy on the one thread.
    ways = [2 * count for count in (4 * 2**18, 2**15, 2**18, 2**15)]
    assert found["best"] == {"float32": ways, "bfloat16": [*ways[:3], 4 * 2**18 / 1e3]}, "NumPy has no bfloat16"


_PROBE = """
import json, sys, msgspec
from measure.model.roofline import Work
from measure.subject import subject
from measure.subject.messages import Spec
from strategies import script

class Channel:
    def send(self, message): print(msgspec.json.encode(message).decode())

for work in json.loads(sys.argv[1]):
    spec = Spec(role="probes", script=script.build_settings("CPU:0", 1), work=msgspec.convert(work, Work))
    subject.serve(spec, Channel())
    break
import tensorflow as tf
from measure.subject import probes
for work in json.loads(sys.argv[1])[1:]:
    rates = probes.measure(msgspec.convert(work, Work), "CPU:0", lambda: None)
    print(json.dumps({"event": "rates", "rates": msgspec.to_builtins(rates)}))
print(json.dumps({"event": "threads", "threads": tf.config.threading.get_intra_op_parallelism_threads()}))
"""


def test_probes_find_a_rate_for_all_that_a_case_asks_of_them() -> None:
    works = [
        {"read_bytes": 4096, "written_bytes": 4096, "flops": 1, "functions": {}},
        {"read_bytes": 0, "written_bytes": 0, "flops": 0, "dtype": "uint8", "functions": {"sqrt": 1, "rsqrt": 1}},
        {"read_bytes": 9_000_000, "written_bytes": 10, "flops": 1, "functions": {"sin": 1, "cos": 1, "exp": 1}},
        {"read_bytes": 10, "written_bytes": 9_000_000, "flops": 1, "dtype": "bfloat16", "functions": {"tanh": 1}},
    ]
    done = warm.run(_PROBE, json.dumps(works), folder=Path(__file__).resolve().parents[3])
    assert done.returncode == 0, done.stderr
    *lines, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert last["threads"] == 1, "as many threads as the case has"
    assert all(isinstance(messages.read(line), messages.Probed) for line in lines)
    rates = [line["rates"] for line in lines]
    assert [set(each["functions_per_s"]) for each in rates] == [set(work["functions"]) for work in works]
    assert [each["read_bytes_per_s"] is not None for each in rates] == [False, False, True, False]
    assert [each["write_bytes_per_s"] is not None for each in rates] == [False, False, False, True]
    for each in rates:
        numbers = [each["copy_bytes_per_s"], each["flops_per_s"], *each["functions_per_s"].values()]
        # No machine that runs this moves less than 100 MB/s, or does less than a million of anything in a second.
        assert min(numbers[0] / 1e8, *(number / 1e6 for number in numbers)) > 1
        assert 0 < each["op_s"] < each["call_s"], "a compiled function costs more to call than one op"
