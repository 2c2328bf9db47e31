"""The two sides of a case's roofline: the work of one call, and the rates of a device.

Williams, Waterman and Patterson 2009, «Roofline: an insightful visual performance model».
"""

from measure.model.run import Struct


class Work(Struct, frozen=True, kw_only=True):
    """The work of one call: bytes read (inputs and variables, each once) and written (outputs, once), floating-point
    operations, and results of functions such as ``sin``, by their names in ``tf.math``.
    ``largest_output_bytes``: of the largest tensor that is written. ``unknown``: types of ops whose work is not known,
    and then no arithmetic is counted."""

    read_bytes: int
    written_bytes: int
    flops: int
    functions: dict[str, int] = {}
    dtype: str = "float32"
    largest_output_bytes: int = 0
    unknown: list[str] = []


class Rates(Struct, frozen=True, kw_only=True):
    """The rates of a device, per second. Those of bytes are of a working set as large as the case's: of a copy, what
    is read and what is written together; of reading and of writing alone, where the case does more of one than of the
    other. ``op_s``: seconds of an eager op on a number; ``call_s``: of a call of a ``tf.function`` of one op."""

    copy_bytes_per_s: float
    read_bytes_per_s: float | None = None
    write_bytes_per_s: float | None = None
    flops_per_s: float
    functions_per_s: dict[str, float] = {}
    op_s: float
    call_s: float
