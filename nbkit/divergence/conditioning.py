"""Estimates how much more rounding weighs in a result than in its inputs, as far as statistics of tensors tell."""

from math import inf, prod, sqrt

from nbkit.divergence.runs import Read
from nbkit.ops.families import CONVOLUTIONS, FACTORS, NORMS, family

# These add up what can cancel: their results may be small beside the rounding of what they read.
ADDING = family("ADDS SUBTRACTS sum mean var var_mean std std_mean cumsum _foreach_add _foreach_sub")
# So do these to the first tensor.
ADDING_TO_FIRST = family("INDEX_WRITES lerp addcmul _foreach_lerp _foreach_addcmul")
# Where these divide by little, such as the square roots that Adam takes, rounding weighs more than statistics tell.
DIVIDING = family("DIVIDES addcdiv reciprocal rsqrt _foreach_div _foreach_addcdiv")
DIVISION = 4.0
# Of these so are results with fewer elements than the first input: means, gradients of a bias.
REDUCING = family("NORMS convolution_backward") | {f"{norm}_backward" for norm in NORMS}
# These multiply element by element: what is wrong with a large element may meet a large one, and the result be small.
MULTIPLYING = family(
    "MULTIPLIES _foreach_mul silu_backward gelu_backward tanh_backward sigmoid_backward threshold_backward "
    "elu_backward _softmax_backward_data _log_softmax_backward_data"
)
# These add up products of two of their inputs.
PLACES = {**FACTORS, **dict.fromkeys(CONVOLUTIONS, (0, 1))}
# These take a part, in which there may be none of the large elements.
TAKING = family("PARTS GATHERS TRIANGLES")


def conditioning(packet: str, read: list[Read], made: Read) -> float:
    """Estimates how many times as much rounding may weigh in a result as in what the op reads."""
    if packet in DIVIDING:
        return DIVISION
    floats = [tensor for tensor in read if tensor.eps]
    is_reduced = packet in REDUCING and bool(floats) and made.left.numel < floats[0].left.numel
    if packet in MULTIPLYING:
        factors = floats[:1] if "backward" in packet else floats
        large, small = prod(_extent(tensor) for tensor in factors), _extent(made)
    elif packet in TAKING:
        large, small = max((_extent(tensor) for tensor in floats), default=0.0), _extent(made)
    elif (places := PLACES.get(packet)) is not None and len(floats) > places[1]:
        first, second = (floats[place] for place in places)
        large, small = _sum_of_products(first, second, made), _rms(made)
    elif packet in ADDING:
        large, small = max((_sum(tensor, made) for tensor in floats), default=0.0), _rms(made)
    elif floats and (packet in ADDING_TO_FIRST or is_reduced):
        large, small = _sum(floats[0], made), _rms(made)
    else:
        return 1.0
    return max(1.0, ratio(large, small))


def _sum_of_products(first: Read, second: Read, made: Read) -> float:
    """Returns the usual size of a matrix product without cancellation."""
    terms = sqrt(first.left.numel * second.left.numel / max(made.left.numel, 1))
    return sqrt(max(terms, 1.0)) * _rms(first) * _rms(second)


def _sum(tensor: Read, made: Read) -> float:
    """Returns the usual size of a sum of so many elements, of any sign."""
    return _rms(tensor) * sqrt(max(tensor.left.numel / max(made.left.numel, 1), 1.0))


def _rms(tensor: Read) -> float:
    return max(tensor.left.rms, tensor.right.rms)


def _extent(tensor: Read) -> float:
    return max(tensor.left.extent, tensor.right.extent)


def ratio(dividend: float, divisor: float) -> float:
    """Divides two numbers: 0/0 is 0, x/0 is inf."""
    return dividend / divisor if divisor else inf if dividend else 0.0
