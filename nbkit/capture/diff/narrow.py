"""Kernels that add up in the dtype of their inputs where a wider one was to be expected: less exact, but no error.

torch's CPU kernels do so in half precision for the gradients of weights and biases (LayerNorm, also of float32 weights
under autocast; convolution; BatchNorm). What they give is as near to the reference as that of inputs which were rounded
to their dtype once more. Its float32 norm and dot are one running sum, however long.
"""

from torch import dtype as Dtype

from nbkit.capture.diff.pair import Pair
from nbkit.capture.diff.reduced import FLOAT32_BITS, Reduced
from nbkit.capture.replay.reference import Call
from nbkit.numerics.noise_ratio import noise_ratios, running_growth
from nbkit.numerics.precision import PRECISIONS, Precision

DRAWS = 4
# The noise ratio up to which sums in fewer bits explain a result; that of a right kernel is of order 1.
NEAR = 3.0
# Of so many numbers: good kernels add longer sums in blocks.
LONGEST = 4096


def narrow(pair: Pair) -> Reduced | None:
    """Whether a gradient that is a sum is right if the sums of its call are kept in its narrowest dtype."""
    call, name = pair.call, narrowest(pair.call.dtypes)
    is_gradient = call.plan.packet.endswith("_backward") and pair.summed > 1
    if name is None or not is_gradient or call.reference.function is not None:
        return None
    args, kwargs = call.widened()
    again = Call(call.reference, call.plan, args, kwargs, is_wide=True, in_pieces=False)
    precision = PRECISIONS[name]
    conditioning = again.conditioning(DRAWS, precision.eps)[pair.place].reshape(-1).numpy()
    ratios = noise_ratios(pair.actual, pair.expected, conditioning, precision, pair.factor)
    if ratios.max(initial=0.0) > NEAR:
        return None
    return Reduced(True, f"computed in {name}, the dtype of its inputs: the result is right to that precision")


def running(pair: Pair, precision: Precision, threshold: float) -> Reduced | None:
    """Whether a float32 result of very many numbers is right for a kernel that adds them up one after the other."""
    if precision.digits != FLOAT32_BITS or pair.summed <= LONGEST:
        return None
    conditioning = pair.call.conditioning(0, precision.eps)[pair.place].reshape(-1).numpy()
    ratios = noise_ratios(pair.actual, pair.expected, conditioning, precision, running_growth(pair.summed))
    if ratios.max(initial=0.0) > threshold:
        return None
    return Reduced(True, f"as exact as one running sum in float32 of {pair.summed:,.0f} numbers is, and no more")


def narrowest(dtypes: frozenset[Dtype]) -> str | None:
    """The floating-point dtype with the fewest bits, if it has fewer than float32."""
    names = [str(one).removeprefix("torch.") for one in dtypes]
    known = sorted((PRECISIONS[name].digits, name) for name in names if name in PRECISIONS)
    return known[0][1] if known and known[0][0] < FLOAT32_BITS else None
