"""The work of a function, counted while TensorFlow runs it eagerly: each op that is executed, loops and branches too.

The rules give what is done as it is written, without fusion: a result of an elementwise op counts one floating-point
operation, a sum one a value that goes in, a matrix product two a multiplication. What is moved, cast, drawn at random
or made of text counts none. Of ops that no rule knows the work is not known, and they are named.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from measure.model.roofline import Work

# Functions that cost more than one op, by the op that computes them.
_FUNCTIONS = {
    **{"Sin": "sin", "Cos": "cos", "Tan": "tan", "Exp": "exp", "Log": "log", "Tanh": "tanh", "Erf": "erf"},
    **{"Sqrt": "sqrt", "Rsqrt": "rsqrt", "Sigmoid": "sigmoid", "Softplus": "softplus", "Expm1": "expm1"},
    **{"Softmax": "exp", "LogSoftmax": "exp", "Log1p": "log1p", "Atan": "atan", "Sinh": "sinh", "Cosh": "cosh"},
}
# As the workloads that come along count a function such as `sin`; a root is one op of a processor.
_FUNCTION_FLOPS = 10
_ELEMENTWISE_NAMES = """
    Abs Add AddV2 AddN Sub Mul Div RealDiv DivNoNan Neg Reciprocal Inv Square SquaredDifference Pow Mod FloorMod
    FloorDiv Maximum Minimum Sign Floor Ceil Round Rint Acos Asin Acosh Asinh Atanh Atan2 Erfc Lgamma Digamma Relu
    Relu6 Elu Selu LeakyRelu Softsign BiasAdd ReluGrad Relu6Grad EluGrad LeakyReluGrad TanhGrad SigmoidGrad SqrtGrad
    RsqrtGrad SoftplusGrad SoftsignGrad InvGrad ReciprocalGrad Xlogy Xdivy MulNoNan ClipByValue ComplexAbs Conj
    AdjustHue AdjustSaturation RGBToHSV HSVToRGB
"""
_ELEMENTWISE = set(_FUNCTIONS) | set(_ELEMENTWISE_NAMES.split())
_REDUCTIONS_NAMES = """
    Sum Mean Prod Max Min Cumsum Cumprod L2Loss BiasAddGrad SegmentSum UnsortedSegmentSum EuclideanNorm AvgPool
    MaxPool TopKV2
"""
_REDUCTIONS = set(_REDUCTIONS_NAMES.split())
# Moves, control and variables. What gives no floating-point number, such as a comparison, is free as well.
_FREE_NAMES = """
    Const Identity IdentityN Reshape Transpose Gather GatherV2 GatherNd Slice StridedSlice Cast ConcatV2 Pad PadV2
    MirrorPad Pack Unpack Split SplitV Tile ExpandDims Squeeze Shape ShapeN Size Rank Range Fill ZerosLike OnesLike
    BroadcastTo BroadcastArgs BroadcastGradientArgs InvertPermutation Where Select SelectV2 OneHot ReverseV2 Roll
    StopGradient PreventGradient CheckNumerics StridedSliceGrad ScatterNd TensorScatterUpdate MatrixDiag
    MatrixDiagV3 MatrixDiagPart MatrixDiagPartV3 MatrixSetDiag MatrixSetDiagV3 MatrixBandPart Diag DiagPart Bitcast
    ReadVariableOp VarHandleOp AssignVariableOp AssignAddVariableOp AssignSubVariableOp NoOp DynamicStitch LinSpace
    ResizeBilinear ResizeNearestNeighbor ExtractImagePatches SpaceToDepth DepthToSpace DecodeRaw Real Imag Complex
    EnsureShape Snapshot DeepCopy SparseToDense
"""
_FREE = set(_FREE_NAMES.split())
_FREE_PARTS = ("Random", "String", "TensorList", "TensorArray", "RngRead", "Ragged", "Bucketize", "Multinomial")
# Bookkeeping that no one would count among the ops that a function issues.
_NO_OPS = {"Const", "Identity", "ReadVariableOp", "VarHandleOp", "NoOp", "VarIsInitializedOp", "Shape"}


@dataclass
class Counted:
    """The work of one call. ``unknown``: types of ops whose floating-point operations are not known. The bytes are of
    what ops write beyond the output; ``depth``: the longest chain of roundings."""

    flops: int = 0
    ops: int = 0
    functions: dict[str, int] = field(default_factory=dict)
    temporary_bytes: int = 0
    batched_temporary_bytes: int = 0
    depth: int = 1
    unknown: tuple[str, ...] = ()
    op_types: set[str] = field(default_factory=set)

    def of_case(self, work: Work, times: float) -> Work:
        """Return the work of a case, of which so many times this is the arithmetic; none counts where a part of it is
        not known."""
        if self.unknown:
            return replace(work, unknown=list(self.unknown))
        return replace(work, flops=round(times * self.flops))


def count(function: Callable[..., Any], *arguments: Any) -> tuple[Any, Counted]:
    """Return what the function returns, called eagerly, with the work that it did."""
    import tensorflow as tf

    counted, unknown = Counted(), set[str]()
    written: list[int] = []
    depths: dict[int, int] = {}
    # Tensors are held, so that no other one gets the number of one that is gone.
    held: list[Any] = []

    def take(
        kind: str | bytes,
        inputs: Sequence[Any],
        attributes: Any,
        outputs: Sequence[Any],
        op_name: Any = None,
        graph: Any = None,
    ) -> None:
        if graph is not None:  # it is traced: what it does is counted when it is executed
            return
        op = kind.decode() if isinstance(kind, bytes) else kind
        counted.op_types.add(op)
        held.extend(outputs)
        # An op on no more than a constant, such as a shape or a variable's name, is bookkeeping too.
        counted.ops += op not in _NO_OPS
        flops = _flops(op, inputs, _pairs(attributes), outputs)
        if flops is None:
            unknown.add("PartitionedCall" if op.startswith("__") else op)  # a function has a name of its own
        if flops and (name := _FUNCTIONS.get(op)):
            results = sum(map(_size, outputs))
            counted.functions[name] = counted.functions.get(name, 0) + results
            flops = results * (1 if name == "sqrt" else _FUNCTION_FLOPS)
        counted.flops += flops or 0
        rounded = 0 if op in _FUNCTIONS else _roundings(op, flops or 0, outputs)
        depth = max((depths.get(id(one), 0) for one in inputs), default=0) + (rounded or bool(flops))
        for one in outputs:
            depths[id(one)] = depth
        if op not in _NO_OPS and op not in ("Reshape", "ExpandDims", "Squeeze"):
            written.append(sum(map(_bytes, outputs)))

    with _callback(take), _eagerly():
        result = function(*arguments)
    outputs = [leaf for leaf in tf.nest.flatten(result) if isinstance(leaf, tf.Tensor)]
    counted.unknown = tuple(sorted(unknown))
    counted.depth = max((depths.get(id(leaf), 0) for leaf in outputs), default=0) or 1
    # One by one, an op needs what it reads and what it writes; for the whole batch all that was written may be alive.
    counted.temporary_bytes = max(0, sum(sorted(written)[-2:]) - sum(map(_bytes, outputs)))
    counted.batched_temporary_bytes = max(counted.temporary_bytes, min(sum(written), 3 * max(written, default=0)) // 2)
    return result, counted


@contextmanager
def _callback(take: Callable[..., None]) -> Iterator[None]:
    from tensorflow.python.framework import op_callbacks

    op_callbacks.add_op_callback(take)
    try:
        yield
    finally:
        op_callbacks.remove_op_callback(take)


@contextmanager
def _eagerly() -> Iterator[None]:
    """Have functions that the function calls run op by op as well."""
    import tensorflow as tf

    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


# --- rules -----------------------------------------------------------------------------------------------------------


def _flops(op: str, inputs: Sequence[Any], attributes: dict[Any, Any], outputs: Sequence[Any]) -> int | None:
    """The floating-point operations of one op; None where they are not known."""
    if op in _FREE or any(part in op for part in _FREE_PARTS) or not any(map(_is_floating, outputs)):
        return 0
    if op in _ELEMENTWISE:
        return _size(outputs[0]) * (max(1, len(inputs) - 1) if op == "AddN" else 1)
    if op in _REDUCTIONS:
        return _size(inputs[0])
    rule = _RULES.get(op)
    return None if rule is None else int(rule(inputs, attributes, outputs))


def _roundings(op: str, flops: int, outputs: Sequence[Any]) -> int:
    """The roundings that an op adds to a chain: a sum of n adds n of them at worst."""
    if not flops:
        return 0
    each = flops // max(1, sum(map(_size, outputs)))
    return max(1, each // 2 if op in _RULES else each)


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
    return 2 * _size(outputs[0]) * _size(inputs[1]) // max(1, int(inputs[1].shape[-1]))


def _filter_gradient(inputs: Sequence[Any], attributes: dict[Any, Any], outputs: Sequence[Any]) -> int:
    return 2 * _size(inputs[2]) * _size(outputs[0]) // max(1, int(outputs[0].shape[-1]))


def _input_gradient(inputs: Sequence[Any], attributes: dict[Any, Any], outputs: Sequence[Any]) -> int:
    return 2 * _size(inputs[2]) * _size(inputs[1]) // max(1, int(inputs[1].shape[-1]))


def _cubic(factor: float) -> Callable[..., float]:
    return lambda inputs, attributes, outputs: factor * _size(inputs[0]) * int(inputs[0].shape[-1])


def _of_each_output(factor: int) -> Callable[..., int]:
    return lambda inputs, attributes, outputs: factor * _size(outputs[0])


def _fourier(inputs: Sequence[Any], attributes: dict[Any, Any], outputs: Sequence[Any]) -> float:
    return 5 * _size(outputs[0]) * math.log2(max(2, int(outputs[0].shape[-1])))


def _triangular(inputs: Sequence[Any], attributes: dict[Any, Any], outputs: Sequence[Any]) -> int:
    return _size(outputs[0]) * int(inputs[0].shape[-1])


_RULES: dict[str, Callable[..., float]] = {
    **dict.fromkeys(("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), _product),
    "Einsum": _einsum,
    **dict.fromkeys(("Conv2D", "Conv3D", "DepthwiseConv2dNative"), _convolution),
    **dict.fromkeys(("Conv2DBackpropFilter", "Conv3DBackpropFilterV2"), _filter_gradient),
    **dict.fromkeys(("Conv2DBackpropInput", "Conv3DBackpropInputV2"), _input_gradient),
    "Cholesky": _cubic(1 / 3),
    "MatrixInverse": _cubic(2),
    "MatrixDeterminant": _cubic(2 / 3),
    "LogMatrixDeterminant": _cubic(2 / 3),
    "MatrixSolve": _cubic(2 / 3),
    "SelfAdjointEigV2": _cubic(9),
    "Svd": _cubic(12),
    "Qr": _cubic(4 / 3),
    "MatrixTriangularSolve": _triangular,
    **dict.fromkeys(("FFT", "IFFT", "RFFT", "IRFFT", "FFT2D", "IFFT2D", "RFFT2D"), _fourier),
    **dict.fromkeys(("FusedBatchNormV3", "FusedBatchNormGradV3"), _of_each_output(4)),
    # The mean of each channel, and what is subtracted, multiplied and added.
    "AdjustContrastv2": _of_each_output(4),
    # Where in the image a pixel comes from, and the mean of four others.
    **dict.fromkeys(("ImageProjectiveTransformV2", "ImageProjectiveTransformV3"), _of_each_output(12)),
    "SoftmaxCrossEntropyWithLogits": lambda inputs, attributes, outputs: 6 * _size(inputs[0]),
    "SparseSoftmaxCrossEntropyWithLogits": lambda inputs, attributes, outputs: 6 * _size(inputs[0]),
}


def _pairs(attributes: Any) -> dict[Any, Any]:
    """Attributes as TensorFlow hands them over: names and values by turns."""
    return dict(zip(attributes[::2], attributes[1::2], strict=False)) if attributes else {}


def _size(tensor: Any) -> int:
    return int(tensor.shape.num_elements() or 0)


def _bytes(tensor: Any) -> int:
    return _size(tensor) * tensor.dtype.size


def _is_floating(tensor: Any) -> bool:
    return bool(tensor.dtype.is_floating or tensor.dtype.is_complex)
