"""The two sides of a case's roofline: the work of one call, and the rates of a device.

Williams, Waterman and Patterson 2009, «Roofline: an insightful visual performance model».
"""

from measure.run.run import Struct


class Work(Struct, frozen=True, kw_only=True):
    """The work of one call: bytes read (inputs and variables, each once) and written (outputs, once), and operations on
    floating-point numbers. ``largest_output_bytes``: of the largest tensor that is written. ``unknown``: types of ops
    whose work is not known, and then no arithmetic is counted."""

    read_bytes: int
    written_bytes: int
    flops: int = 0
    dtype: str = "float32"
    largest_output_bytes: int = 0
    unknown: list[str] = []


class Rates(Struct, frozen=True, kw_only=True):
    """The rates of a device. ``bytes_per_s``: of moving a working set as large as the case's, by reading, writing or
    copying, whichever is most like the case; ``flops_per_s``: of multiplications and additions in a matrix product;
    ``op_s``: seconds of an eager op on a number; ``call_s``: of a call of a ``tf.function`` of one op."""

    bytes_per_s: float
    flops_per_s: float
    op_s: float
    call_s: float
