"""Kernels that add up in the dtype of their inputs where a wider one was to be expected: less exact, but no error.

torch's CPU kernels do so in half precision for the gradients of weights and biases (LayerNorm, also of float32 weights
under autocast; convolution) and for the scale and shift of BatchNorm. What they give is as near to the reference as
that of inputs which were rounded to their dtype once more.
"""

from torch import dtype as Dtype

from nbkit.capture.diff.reduced import Reduced
from nbkit.capture.rerun.reference import Call
from nbkit.precision import PRECISIONS, Array
from nbkit.verdicts import noise_ratios

FLOAT32_BITS = PRECISIONS["float32"].digits
DRAWS = 4
# The noise ratio up to which sums in fewer bits explain a result; that of a right kernel is of order 1.
NEAR = 3.0


def narrow(call: Call, place: int, sides: tuple[Array, Array], factor: float) -> Reduced | None:
    """Whether a result (actual, expected) is right if sums of its call are kept in its narrowest dtype."""
    name = narrowest(call.dtypes)
    if name is None or call.plan.is_pointwise or call.reference.function is not None:
        return None
    args, kwargs = call.widened()
    again = Call(call.reference, call.plan, args, kwargs, is_wide=True, in_pieces=False)
    precision = PRECISIONS[name]
    conditioning = again.conditioning(DRAWS, precision.eps)[place].reshape(-1).numpy()
    if noise_ratios(*sides, conditioning, precision, factor).max(initial=0.0) > NEAR:
        return None
    return Reduced(True, f"computed in {name}, the dtype of its inputs: the result is right to that precision")


def narrowest(dtypes: frozenset[Dtype]) -> str | None:
    """The floating-point dtype with the fewest bits, if it has fewer than float32."""
    names = [str(one).removeprefix("torch.") for one in dtypes]
    known = sorted((PRECISIONS[name].digits, name) for name in names if name in PRECISIONS)
    return known[0][1] if known and known[0][0] < FLOAT32_BITS else None
