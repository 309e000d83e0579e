"""Results in fewer bits than their dtype has, which are no error: products of TF32, sums in the dtype of the inputs.

A float32 product is run on the reference with its factors rounded to the mantissa of TF32 and of bfloat16, to nearest
and toward zero. Where the result is as near to one of these as a correct kernel's is to its own, that is what the
device did. Where it is none of these, but no further off than they are, the message says so and the verdict stays.

torch's CPU kernels add up in half precision for the gradients of weights and biases (LayerNorm, also of float32 weights
under autocast; some convolutions), and compute positions in an image so, by a few operations one after the other.
What they give is as near to the reference as that of inputs which were rounded to their dtype once more, or as one
running sum in that dtype. Its float32 norms are one running sum, however long, or a few side by side in a vector: such
a result is compared with those sums, so that it need not be allowed what any order of adding might do. Its products of
very long sums, and statistics and gradients over very many rows, are running sums, too, in an order that the kernel
alone knows: these are allowed what one sum might do. sum, mean, var and losses are not: their kernels add in blocks.
"""

from collections.abc import Callable, Iterator, Set
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nbkit.capture.diff.pair import Pair, flat
from nbkit.capture.diff.rechecks.inner_rounding import RESAMPLING, noise_of_positions
from nbkit.capture.diff.rechecks.running_sums import norms, running_sum
from nbkit.capture.replay.copies import mapped_call
from nbkit.capture.replay.reference import Call
from nbkit.numerics.noise_ratio import Allowance, noise_ratios, running_growth
from nbkit.numerics.precision import PRECISIONS, Array, Precision
from nbkit.ops.families import MULTIPLIED
from nbkit.ops.rounding import RUNNING_SUMS

# Bits of the mantissa after the leading one, and how many more a float32 has.
FORMATS = {"TF32": 10, "bfloat16": 7}
FLOAT32_BITS = 23
# Positions of the factors of each product.
FACTORS = {**MULTIPLIED, "convolution_backward": (0, 1, 2)}
DRAWS = 4
# Of a position in an image: the index, a sum, a product and a difference.
ROUNDINGS = 4
# The noise ratio up to which sums in fewer bits explain a result; that of a correct kernel is of order 1.
NEAR = 3.0
# Of so many numbers: good kernels add longer sums in blocks.
LONGEST = 4096
# Gradients that these kernels add up in float32.
IN_FLOAT32 = ("native_batch_norm_backward", "native_group_norm_backward")
Rounding = Callable[[Tensor, int], Tensor]


class Reduced(NamedTuple):
    """What fewer bits explain of a result, in a message; `wholly` if they explain all; `format` is that of inputs."""

    wholly: bool
    message: str
    format: str | None = None


def reduced(
    call: Call, index: int, sides: tuple[Array, Array], precision: Precision, allowed: Allowance, threshold: float
) -> Reduced | None:
    """Whether a result (actual, expected) is what factors of fewer bits make; None for one that is not."""
    factors = FACTORS.get(call.traits.packet, ())
    if precision.digits != FLOAT32_BITS or not call.is_wide or call.reference.dtype is not torch.float64:
        return None
    actual, expected = sides
    conditioning = call.conditioning(0, precision.eps)[index].reshape(-1).numpy()
    near: Reduced | None = None
    for name, results in _attempts(call, factors):
        coarse = results[index].reshape(-1).numpy()
        if noise_ratios(actual, coarse, conditioning, precision, allowed).max(initial=0.0) <= threshold:
            text = f"float32 computed as {name}: with inputs of {FORMATS[name]} mantissa bits the result is right"
            return Reduced(True, text, name)
        if noise_ratios(actual, expected, abs(coarse - expected), precision).max(initial=0.0) <= threshold:
            near = near or Reduced(False, f"no further off than {name} would be ({FORMATS[name]} mantissa bits)")
    return near


def _attempts(call: Call, factors: tuple[int, ...]) -> Iterator[tuple[str, list[Tensor]]]:
    """Results of the call, the coarsest format last, its factors rounded in each of three ways."""
    args, kwargs = call.widened()
    chosen = {id(args[index]) for index in factors if index < len(args) and isinstance(args[index], Tensor)}
    if not chosen:
        return
    for name, bits in FORMATS.items():
        for rounded in (to_even, away_from_zero, towards_zero):

            def change(value: Any, lost: int = FLOAT32_BITS - bits, rounded: Rounding = rounded) -> Any:
                return kept(value, lost, rounded) if id(value) in chosen else value

            yield name, call.once(*mapped_call(args, kwargs, change, {})).all


def kept(values: Tensor, lost: int, rounded: Rounding) -> Tensor:
    """float32 numbers without their last `lost` bits; held in the dtype that they came in, complex ones by parts."""
    if values.is_complex():
        return torch.view_as_complex(kept(torch.view_as_real(values.resolve_conj()), lost, rounded))
    bits = values.to(torch.float32).view(torch.int32)
    near = (rounded(bits, lost) & -(1 << lost)).view(torch.float32)
    return torch.where(values.isfinite(), near, values).to(values.dtype)


def to_even(bits: Tensor, lost: int) -> Tensor:
    """What to cut for the nearest number, of two the even one."""
    return bits + ((1 << lost - 1) - 1) + (bits >> lost & 1)


def away_from_zero(bits: Tensor, lost: int) -> Tensor:
    """What to cut for the nearest number, of two the greater in magnitude."""
    return bits + (1 << lost - 1)


def towards_zero(bits: Tensor, lost: int) -> Tensor:
    """What to cut for the next number toward zero."""
    return bits


def narrow(pair: Pair) -> Reduced | None:
    """Whether a sum, or a resampled image, is right if what leads to it is kept in the narrowest dtype of its call."""
    name = narrowest(pair.call.dtypes)
    if name is None or pair.call.reference.function is not None:
        return None
    if _is_right_in(PRECISIONS[name], pair):
        return Reduced(True, f"computed in {name}, the dtype of its inputs: the result is right to that precision")
    simulated = running_sum(pair.call, pair.position, getattr(torch, name))
    if simulated is None:
        return None
    error = abs(flat(simulated) - pair.expected)
    if noise_ratios(pair.actual, pair.expected, error, PRECISIONS[name]).max(initial=0.0) > 1:
        return None  # further off than the simulated sum
    share = float(error.sum() / max(abs(pair.expected).sum(), np.finfo(float).tiny))
    return Reduced(True, f"as exact as one running sum in {name}, which is {share:.1%} off here")


def _is_right_in(precision: Precision, pair: Pair) -> bool:
    """Whether rounding the inputs once more explains a result that torch's kernels compute in their dtype."""
    call = pair.call
    is_resampled = call.traits.packet.startswith(RESAMPLING)
    is_sum = call.traits.packet.endswith("_backward") and pair.summed > 1 and call.traits.packet not in IN_FLOAT32
    if not is_sum and not is_resampled:
        return False
    args, kwargs = call.widened()
    again = Call(call.reference, call.traits, args, kwargs, is_wide=True, in_pieces=False)
    eps = precision.eps * (ROUNDINGS if is_resampled else 1)
    conditioning = again.conditioning(DRAWS, eps)[pair.position].reshape(-1).numpy()
    conditioning = conditioning + noise_of_positions(call, pair.position, precision.eps)
    ratios = noise_ratios(pair.actual, pair.expected, conditioning, precision, pair.allowed)
    return bool(ratios.max(initial=0.0) <= NEAR)


def running(pair: Pair, precision: Precision, threshold: float) -> Reduced | None:
    """Whether a float32 result of very many numbers is right for a kernel that adds them up one after the other."""
    if precision.digits != FLOAT32_BITS or pair.summed <= LONGEST or pair.call.reference.function is not None:
        return None
    message = f"as exact as one running sum in float32 of {pair.summed:,.0f} numbers is, and no more"
    for simulated in norms(pair.call, pair.position):
        if noise_ratios(pair.actual, flat(simulated), 0.0, precision).max(initial=0.0) <= threshold:
            return Reduced(True, message)
    if pair.call.traits.packet not in RUNNING_SUMS:
        return None
    conditioning = pair.call.conditioning(0, precision.eps)[pair.position].reshape(-1).numpy()
    allowed = Allowance(*[running_growth(pair.summed)] * 2)
    ratios = noise_ratios(pair.actual, pair.expected, conditioning, precision, allowed)
    return Reduced(True, message) if ratios.max(initial=0.0) <= threshold else None


def narrowest(dtypes: Set[torch.dtype]) -> str | None:
    """The floating-point dtype with the fewest bits, if it has fewer than float32."""
    names = [str(dtype).removeprefix("torch.") for dtype in dtypes]
    known = sorted((PRECISIONS[name].digits, name) for name in names if name in PRECISIONS)
    return known[0][1] if known and known[0][0] < FLOAT32_BITS else None
