"""The work of a function, counted while TensorFlow runs it eagerly: each op that is executed, loops and branches too.

The rules give what is done as it is written, without fusion: a sum counts one floating-point operation for each value
that goes in, a matrix product two for each multiplication, and an op without a rule one for each result.
What is moved, cast, drawn at random or made of text counts none. The work of Python's functions is not known.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Functions count as so many, as the workloads that come along count a function such as `sin`.
_FUNCTION_FLOPS = 10
_FUNCTIONS = _names("Sin Cos Tan Exp Log Tanh Erf Rsqrt Sigmoid Softplus Expm1 Softmax LogSoftmax Log1p Atan Sinh Cosh")
_REDUCTIONS = _names(
    "Sum Mean Prod Max Min Cumsum Cumprod L2Loss BiasAddGrad SegmentSum UnsortedSegmentSum EuclideanNorm AvgPool "
    "MaxPool TopKV2"
)
# Moves and variables. What gives no floating-point number, such as a comparison, is free as well.
_FREE = _names(
    """Const Identity IdentityN Reshape Transpose Gather GatherV2 GatherNd Slice StridedSlice Cast ConcatV2 Pad PadV2
    MirrorPad Pack Unpack Split SplitV Tile ExpandDims Squeeze Range Fill ZerosLike OnesLike BroadcastTo Select SelectV2
    OneHot ReverseV2 Roll StopGradient PreventGradient CheckNumerics StridedSliceGrad ScatterNd TensorScatterUpdate
    MatrixDiag MatrixDiagV3 MatrixDiagPart MatrixDiagPartV3 MatrixSetDiag MatrixSetDiagV3 MatrixBandPart Diag DiagPart
    Bitcast ReadVariableOp DynamicStitch LinSpace ResizeBilinear ResizeNearestNeighbor ExtractImagePatches SpaceToDepth
    DepthToSpace DecodeRaw Real Imag Complex EnsureShape Snapshot DeepCopy SparseToDense"""
)
_FREE_PARTS = ("Random", "String", "TensorList", "TensorArray", "RngRead", "Ragged", "Bucketize", "Multinomial")
# Bookkeeping that no one would count among the ops that a function issues, and what writes nothing.
_NO_OPS = _names("Const Identity ReadVariableOp VarHandleOp NoOp VarIsInitializedOp Shape")
_VIEWS = _names("Reshape ExpandDims Squeeze")


@dataclass
class Counted:
    """The work of one call. ``batched_temporary_bytes``: what ops write beyond the output, where all elements are
    computed at once; ``depth``: the longest chain of roundings; ``unknown``: types of ops whose work is not known."""

    flops: int = 0
    ops: int = 0
    batched_temporary_bytes: int = 0
    depth: int = 1
    unknown: list[str] = field(default_factory=list)
    op_types: set[str] = field(default_factory=set)


def count(function: Callable[..., Any], *arguments: Any) -> tuple[Any, Counted]:
    """Return what the function returns, called eagerly, with the work that it did."""
    import tensorflow as tf
    from tensorflow.python.framework import op_callbacks

    counted, written = Counted(), [0]
    # The tensors so far by their numbers, each with the depth of its chain; held, so that no number is used again.
    chains: dict[int, tuple[int, Any]] = {}

    def deepest(tensors: Sequence[Any]) -> int:
        return max((chains.get(id(one), (0, None))[0] for one in tensors), default=0)

    def take(kind: Any, inputs: Any, attributes: Any, outputs: Any, op_name: Any = None, graph: Any = None) -> None:
        if graph is not None:  # it is traced: what it does is counted when it is executed
            return
        op = kind.decode() if isinstance(kind, bytes) else kind
        op = "PartitionedCall" if op.startswith("__") else op  # a function has a name of its own
        pairs = attributes or ()  # names and values by turns
        flops = _flops(op, inputs, dict(zip(pairs[::2], pairs[1::2], strict=True)), outputs)
        if flops is None and op not in counted.unknown:
            counted.unknown = sorted([*counted.unknown, op])
        counted.op_types.add(op)
        counted.ops += op not in _NO_OPS
        counted.flops += flops or 0
        depth = deepest(inputs) + _roundings(op, flops or 0, outputs)
        chains.update((id(one), (depth, one)) for one in outputs)
        if op not in _NO_OPS | _VIEWS:
            written.append(sum(map(_bytes, outputs)))

    ran_eagerly = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)  # those that the function calls, too, run op by op
    op_callbacks.add_op_callback(take)
    try:
        result = function(*arguments)
    finally:
        op_callbacks.remove_op_callback(take)
        tf.config.run_functions_eagerly(ran_eagerly)
    counted.depth = deepest([leaf for leaf in tf.nest.flatten(result) if isinstance(leaf, tf.Tensor)]) or 1
    # All that was written may be alive, but not for much longer than the next ops need it.
    counted.batched_temporary_bytes = min(sum(written), 3 * max(written)) // 2
    return result, counted


# --- rules -----------------------------------------------------------------------------------------------------------


def _flops(op: str, inputs: Sequence[Any], attributes: dict[Any, Any], outputs: Sequence[Any]) -> int | None:
    gives_numbers = any(one.dtype.is_floating or one.dtype.is_complex for one in outputs)
    if op in _FREE or any(part in op for part in _FREE_PARTS) or not gives_numbers:
        return 0
    if op == "PartitionedCall" or "PyFunc" in op:
        return None
    if op in _REDUCTIONS:
        return _size(inputs[0])
    if rule := _RULES.get(op):
        return int(rule(inputs, attributes, outputs))
    return (_FUNCTION_FLOPS if op in _FUNCTIONS else 1) * sum(map(_size, outputs))


def _roundings(op: str, flops: int, outputs: Sequence[Any]) -> int:
    """The roundings that an op adds to a chain: a sum of n adds n of them at worst."""
    if not flops or op in _FUNCTIONS:
        return min(1, flops)
    of_a_result = flops // max(1, sum(map(_size, outputs)))
    return max(1, of_a_result // 2 if op in _RULES else of_a_result)


def _product(inputs: Sequence[Any], attributes: dict[Any, Any], outputs: Sequence[Any]) -> int:
    transposed = attributes.get("transpose_a") or attributes.get("adj_x")
    return 2 * _size(outputs[0]) * int(inputs[0].shape[-2 if transposed else -1])


def _einsum(inputs: Sequence[Any], attributes: dict[Any, Any], outputs: Sequence[Any]) -> int:
    equation = attributes["equation"]
    left, _, right = (equation.decode() if isinstance(equation, bytes) else equation).partition("->")
    terms = left.split(",")
    lengths: dict[str, int] = {}
    for term, one in zip(terms, inputs, strict=True):
        if "..." in term:
            return 2 * max(map(_size, inputs)) * int(outputs[0].shape[-1])
        lengths |= dict(zip(term, map(int, one.shape), strict=True))
    # Where nothing is summed over, it is a multiplication a result.
    return (2 if len(terms) > 1 and set(lengths) > set(right) else 1) * math.prod(lengths.values())


def _convolution(inputs: Sequence[Any], attributes: dict[Any, Any], outputs: Sequence[Any]) -> int:
    """A gradient has what comes out of the convolution as its third input, and its kernel as an input or as output."""
    result = inputs[2] if len(inputs) == 3 else outputs[0]
    kernel = inputs[1] if len(inputs[1].shape) > 1 else outputs[0]
    return 2 * _size(result) * _size(kernel) // max(1, int(kernel.shape[-1]))


_FACTORISED = "Cholesky MatrixInverse MatrixDeterminant LogMatrixDeterminant MatrixSolve SelfAdjointEigV2 Svd Qr"
_FOURIER = "FFT IFFT RFFT IRFFT FFT2D IFFT2D RFFT2D"
_RULES: dict[str, Callable[..., float]] = {
    op: rule
    for rule, ops in (
        (_product, "MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3"),
        (_einsum, "Einsum"),
        (_convolution, "Conv2D Conv3D DepthwiseConv2dNative Conv2DBackpropFilter Conv2DBackpropInput"),
        (_convolution, "Conv3DBackpropFilterV2 Conv3DBackpropInputV2"),
        # Factors take a third of that at the least, which is Cholesky's.
        (lambda given, _, made: _size(given[0]) * int(given[0].shape[-1]) / 3, _FACTORISED),
        (lambda given, _, made: _size(made[0]) * int(given[0].shape[-1]), "MatrixTriangularSolve"),
        (lambda given, _, made: 5 * _size(made[0]) * math.log2(max(2, int(made[0].shape[-1]))), _FOURIER),
    )
    for op in ops.split()
}


def _size(tensor: Any) -> int:
    return int(tensor.shape.num_elements() or 0)


def _bytes(tensor: Any) -> int:
    return _size(tensor) * tensor.dtype.size
