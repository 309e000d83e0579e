"""Rounding inside an op that a change of its inputs does not show.

Attention in half precision: its kernels compute exp() to some 14 bits, which its logsumexp shows. That is a float32
note for the backward op, whose own results are in half precision. torch's CPU kernels are off by up to 6.5e-5 in it
whatever its size (bfloat16 and float16, 8 to 512 positions, torch 2.13), which is the relative error of their exp();
that of float32 inputs is right to 6e-7.

The backward pass of log_softmax is g - exp(o) sum(g): where a sample is classified well, o is near 0, which no relative
change moves, while exp(o), near 1, is rounded like any number of that size.
"""

import torch
from torch import Tensor

from nbkit.capture.diff.pair import flat
from nbkit.capture.replay.op_traits import bound
from nbkit.capture.replay.reference import Call
from nbkit.numerics.precision import Array

NOISE_OF_EXP = 2.0**-14
LOGSUMEXP = 1  # its index among the results
HALVES = (torch.bfloat16, torch.float16)
# They compute the position that each element is read at in float32, the index with it; some in half precision.
RESAMPLING = ("upsample_", "_upsample_", "grid_sampler_")


def inner_noise(call: Call, index: int, eps: float) -> Array | float:
    """What rounding inside an op, to eps of each number, may add to its result at a place."""
    packet = call.traits.packet
    if packet.startswith("_scaled_dot_product_") and not packet.endswith("_backward"):
        return NOISE_OF_EXP if index == LOGSUMEXP and call.dtype in HALVES else 0.0
    if packet == "_log_softmax_backward_data" and call.reference.function is None:
        gradient, output, dim, _ = bound(call.traits.func, *call.widened()).values()
        noise: Tensor = eps * output.exp() * gradient.abs().sum(dim, keepdim=True)
        return flat(noise.nan_to_num(nan=0.0, posinf=0.0))
    return 0.0


def noise_of_positions(call: Call, index: int, eps: float) -> float:
    """What the rounding of positions may add to the result at a place of an op that resamples images; 0 for others.

    A position is off by a part of eps times the index, which moves the result by as much of what neighbors differ by.
    """
    if not call.traits.packet.startswith(RESAMPLING):
        return 0.0
    image = call.tensors()[0]
    sides = *image.shape[2:], *call.results().all[index].shape[2:]
    return eps / 4 * max(sides, default=0) * float(image.abs().max()) if image.numel() else 0.0
