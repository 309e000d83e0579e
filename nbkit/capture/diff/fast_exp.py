"""Attention in half precision: its kernels compute exp() to some 14 bits, which its logsumexp shows.

The logsumexp is a float32 note for the backward op, whose own results are in half precision. torch's CPU kernels are
off by up to 6.5e-5 in it whatever its size (bfloat16 and float16, 8 to 512 positions, torch 2.13), which is the
relative error of their exp(); that of float32 inputs is right to 6e-7.
"""

import torch

from nbkit.capture.replay.reference import Call

NOISE = 2.0**-14
LOGSUMEXP = 1  # its index among the results
HALVES = (torch.bfloat16, torch.float16)


def noise_of_exp(call: Call, index: int) -> float:
    """What a fast exp() may add to the result at a place; 0 for all but the logsumexp of such an attention."""
    packet = call.traits.packet
    is_attention = packet.startswith("_scaled_dot_product_") and not packet.endswith("_backward")
    return NOISE if is_attention and index == LOGSUMEXP and call.dtype in HALVES else 0.0
