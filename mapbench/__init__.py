"""Mapbench in Python: which way of mapping a function over a batch to use in TensorFlow, here.

    import mapbench

    result = mapbench.compare(fn, elems)
    print(result)
    mapped = mapbench.best(fn, elems)

They measure in processes of their own, and leave the TensorFlow of their caller alone. A notebook draws their results.
What they raise, `NotSendable` and `RequestError`, are ValueErrors whose sentence says what is wrong.
"""

from mapbench.api import best, compare, sweep
from mapbench.given import NotSendable
from mapbench.result import Result, SweepResult
from measure.run.request import RequestError

__all__ = ["NotSendable", "RequestError", "Result", "SweepResult", "best", "compare", "sweep"]
