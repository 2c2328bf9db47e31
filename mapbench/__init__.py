"""Mapbench in Python: which way of mapping a function over a batch to use in TensorFlow, here.

    import mapbench

    result = mapbench.compare(fn, elems)
    print(result)
    mapped = mapbench.best(fn, elems)

`mapbench.compare` measures in processes of its own, and leaves the TensorFlow of its caller alone.
"""

from mapbench.api import best, compare
from mapbench.result import Result

__all__ = ["Result", "best", "compare"]
