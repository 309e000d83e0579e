"""Counts the FLOPs of an op as the Colossal-AI Analyzer does: a multiply-add is 1, and elementwise ops count too."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

Rule = Callable[[Sequence[Any], Sequence[Any]], int]


def analyzer_flops(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
    """Returns the FLOPs of one call of an ATen op by the rules of the Colossal-AI Analyzer.

    `func` is the overload that ran, `args` and `kwargs` what it took, `out` what it returned, as a dispatch mode sees
    them; of tensors only their shape is read. A multiply-add is 1 FLOP; matrix products count no bias. An elementwise
    op, an activation, softmax, dropout, `sum` and `mean` count the elements of their first argument, a pooling op what
    it reads, a layer norm 5 per element (4 without affine parameters), a batch norm 5 in training and 2 else. The
    rules know overloads by name, and an op that they do not know counts 0, as it does there: `sub`, `exp`, `baddbmm`,
    fused attention. It counts the backward pass of grouped and transposed convolutions too high, as that one does. The
    sums of gradients that autograd adds where a tensor was taken twice are not in its tables; leave these calls out.

    Rules: colossalai/_analyzer/_subclasses/flop_tensor.py of Colossal-AI at 4f9953be.
    """
    rule = _RULES.get(str(func))
    if rule is None:
        return 0
    given = [*args, *(kwargs[name] for name in (each.name for each in func._schema.arguments) if name in kwargs)]
    return rule(given, out if isinstance(out, list | tuple) else (out,))


def _elements(tensor: Any) -> int:
    return int(prod(tensor.shape)) if len(tensor.shape) else 0


def _taken(args: Sequence[Any], _: Sequence[Any]) -> int:
    return _elements(args[0])


def _returned(_: Sequence[Any], outs: Sequence[Any]) -> int:
    return _elements(outs[0])


def _product(args: Sequence[Any], _: Sequence[Any]) -> int:
    left, right = args[-2:]
    return int(prod(left.shape) * right.shape[-1])


def _biased_product(args: Sequence[Any], _: Sequence[Any]) -> int:
    return int(prod(args[1].shape) * args[2].shape[-1])


def _layer_norm(args: Sequence[Any], _: Sequence[Any]) -> int:
    return int(prod(args[0].shape)) * (4 if args[2] is None else 5)


def _batch_norm(args: Sequence[Any], _: Sequence[Any]) -> int:
    training = args[-3]
    in_evaluation = 1 if args[1] is None else 2
    return int(prod(args[0].shape)) * (5 if training else in_evaluation)


def _batch_norm_backward(args: Sequence[Any], _: Sequence[Any]) -> int:
    return int(prod(args[0].shape)) * 5


def _convolved(x: Sequence[int], weight: Sequence[int], out: Sequence[int], transposed: bool) -> int:
    return x[0] * prod(weight) * prod((x if transposed else out)[2:])


def _convolution(args: Sequence[Any], outs: Sequence[Any]) -> int:
    return _convolved(args[0].shape, args[1].shape, outs[0].shape, args[6])


def _convolution_backward(args: Sequence[Any], outs: Sequence[Any]) -> int:
    """Counts the gradients as convolutions without groups."""
    gradient, x, weight = (tensor.shape for tensor in args[:3])
    transposed, wanted, total = args[7], args[-1], 0
    if wanted[0]:
        total += _convolved(gradient, weight, outs[0].shape, not transposed)
    if wanted[1]:
        total += _convolved([x[1], x[0], *x[2:]], gradient, outs[1].shape, transposed)
    return total


def _under(rule: Rule, names: str) -> dict[str, Rule]:
    return {f"aten.{name}" if "." in name else f"aten.{name}.default": rule for name in names.split()}


_RULES: dict[str, Rule] = {
    **_under(_product, "mm matmul bmm"),
    **_under(_biased_product, "addmm"),
    **_under(_convolution, "convolution _convolution"),
    **_under(_convolution_backward, "convolution_backward"),
    **_under(_layer_norm, "native_layer_norm native_layer_norm_backward"),
    **_under(_batch_norm, "native_batch_norm native_batch_norm_backward cudnn_batch_norm"),
    **_under(_batch_norm_backward, "cudnn_batch_norm_backward"),
    **_under(
        _taken,
        "avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d max_pool1d_with_indices "
        "max_pool2d_with_indices max_pool3d_with_indices _adaptive_avg_pool2d _adaptive_avg_pool3d embedding",
    ),
    **_under(
        _returned,
        "avg_pool2d_backward avg_pool3d_backward max_pool2d_with_indices_backward max_pool3d_with_indices_backward "
        "_adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward embedding_dense_backward",
    ),
    **_under(
        _taken,
        "add.Tensor add_.Tensor div.Tensor div_.Tensor div.Scalar div_.Scalar mul.Tensor mul.Scalar mul_.Tensor neg "
        "pow.Tensor_Scalar rsub.Scalar sum sum.dim_IntList mean.dim",
    ),
    **_under(
        _taken,
        "hardswish hardswish_ hardswish_backward hardtanh hardtanh_ hardtanh_backward hardsigmoid "
        "hardsigmoid_backward gelu gelu_backward silu silu_ silu_backward sigmoid sigmoid_backward _softmax "
        "_softmax_backward_data relu relu_ tanh tanh_backward threshold_backward native_dropout "
        "native_dropout_backward bernoulli_.float where.self",
    ),
}
