"""Counts the multiply-adds of convolutions, as 2 FLOPs each."""

from collections.abc import Sequence
from math import prod
from typing import Any

from nbkit.ops.flops.products import Formula, Shape, under


def _convolution(
    x: Shape, weight: Shape, _: Any, stride: Shape, padding: Shape, dilation: Shape, transposed: bool, *__: Any
) -> int:
    """Counts each weight once per position of the result (of the input, if transposed)."""
    return 2 * x[0] * prod(weight) * prod(x[2:] if transposed else _sizes(x, weight, stride, padding, dilation))


def _convolution_backward(gradient: Shape, x: Shape, weight: Shape, *options: Any) -> int:
    """Counts the gradients of input and weight as much as the convolution, each, whatever the groups."""
    transposed, wanted = options[-4], options[-1]
    return _gradients(x if transposed else gradient, weight, wanted)


def _gradients(positions: Shape, weight: Shape, wanted: Sequence[bool]) -> int:
    return sum(wanted[:2]) * 2 * positions[0] * prod(weight) * prod(positions[2:])


def _transposed(x: Shape, weight: Shape, *_: Any) -> int:
    return 2 * x[0] * prod(weight) * prod(x[2:])


def _padding_first(
    x: Shape, weight: Shape, _: Any, padding: Shape, stride: Shape, dilation: Shape = (1,), *__: Any
) -> int:
    return _convolution(x, weight, None, stride, padding, dilation, False)


def _without_bias(x: Shape, weight: Shape, padding: Shape, stride: Shape, dilation: Shape, *_: Any) -> int:
    return _convolution(x, weight, None, stride, padding, dilation, False)


def _with_kernel(
    x: Shape, weight: Shape, _: Any, __: Any, stride: Shape, padding: Shape, dilation: Shape = (1,)
) -> int:
    return _convolution(x, weight, None, stride, padding, dilation, False)


def _with_activation(x: Shape, weight: Shape, _: Any, stride: Shape, padding: Shape, dilation: Shape, *__: Any) -> int:
    return _convolution(x, weight, None, stride, padding, dilation, False)


def _with_sum(x: Shape, weight: Shape, _: Any, __: Any, ___: Any, *options: Any) -> int:
    return _with_activation(x, weight, None, *options)


def _over_time(x: Shape, weight: Shape, _: Any, padding: int = 0) -> int:
    """Counts x (T, B, C) by a weight of (kernel, C, out)."""
    return 2 * (x[0] + 2 * padding - weight[0] + 1) * x[1] * prod(weight)


def _slow_backward(gradient: Shape, _: Shape, weight: Shape, *options: Any) -> int:
    return _gradients(gradient, weight, options[-1])


def _mps_backward(_: Shape, gradient: Shape, weight: Shape, *options: Any) -> int:
    return _gradients(gradient, weight, options[-1])


def _sizes(x: Shape, weight: Shape, stride: Shape, padding: Shape, dilation: Shape) -> list[int]:
    """Returns the sizes of a convolution's result beyond batch and channels; an option of one value holds for all."""
    dims = len(x) - 2
    steps, pads, gaps = (list(option) * (dims if len(option) == 1 else 1) for option in (stride, padding, dilation))
    return [
        (size + 2 * pad - gap * (kernel - 1) - 1) // step + 1
        for size, kernel, step, pad, gap in zip(x[2:], weight[2:], steps, pads, gaps, strict=True)
    ]


CONVOLUTIONS: dict[str, Formula] = {
    **under(_convolution, "convolution _convolution convolution_overrideable"),
    **under(_convolution_backward, "convolution_backward convolution_backward_overrideable"),
    **under(_padding_first, "mkldnn_convolution miopen_convolution miopen_depthwise_convolution _mps_convolution"),
    **under(_padding_first, "_nnpack_spatial_convolution"),
    **under(_without_bias, "cudnn_convolution"),
    **under(_with_activation, "cudnn_convolution_relu miopen_convolution_relu"),
    **under(_with_sum, "cudnn_convolution_add_relu miopen_convolution_add_relu"),
    **under(_with_kernel, "_slow_conv2d_forward slow_conv3d_forward _conv_depthwise2d conv_depthwise3d"),
    **under(_with_kernel, "slow_conv_dilated2d slow_conv_dilated3d"),
    **under(_transposed, "cudnn_convolution_transpose miopen_convolution_transpose _mps_convolution_transpose"),
    **under(_transposed, "slow_conv_transpose2d slow_conv_transpose3d"),
    **under(_slow_backward, "_slow_conv2d_backward"),
    **under(_mps_backward, "mps_convolution_backward"),
    **under(_over_time, "conv_tbc"),
}
