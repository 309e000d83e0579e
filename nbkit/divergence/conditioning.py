"""Estimates how much more rounding weighs in a result than in its inputs, as far as statistics of tensors tell."""

from math import inf, prod, sqrt

from nbkit.divergence.runs import Read
from nbkit.ops.families import MULTIPLIED, NORMS, family, gradients_of
from nbkit.ops.rounding import DIVIDING, MULTIPLYING

# These add up what can cancel: their results may be small beside the rounding of what they read.
ADDING = family("ADDS SUBTRACTS MEANS sum cumsum")
# So do these to the first tensor.
ADDING_TO_FIRST = family("INDEX_WRITES lerp addcmul")
DIVISION = 4.0
# Of these so are results with fewer elements than the first input: means, gradients of a bias.
REDUCING = NORMS | gradients_of("NORMS convolution")
# These take a part, in which there may be none of the large elements.
TAKING = family("PARTS GATHERS TRIANGLES")


def conditioning(packet: str, read: list[Read], made: Read) -> float:
    """Estimates how many times as much rounding may weigh in a result as in what the op reads."""
    single = packet.removeprefix("_foreach_")
    if single in DIVIDING:
        return DIVISION
    floats = [tensor for tensor in read if tensor.eps]
    is_reduced = packet in REDUCING and bool(floats) and made.left.numel < floats[0].left.numel
    if single in MULTIPLYING:
        factors = floats[:1] if "backward" in packet else floats
        large, small = prod(_extent(tensor) for tensor in factors), _extent(made)
    elif packet in TAKING:
        large, small = max((_extent(tensor) for tensor in floats), default=0.0), _extent(made)
    elif (places := MULTIPLIED.get(packet)) is not None and len(floats) > places[1]:
        first, second = (floats[place] for place in places)
        large, small = _sum_of_products(first, second, made), _rms(made)
    elif single in ADDING:
        large, small = max((_sum(tensor, made) for tensor in floats), default=0.0), _rms(made)
    elif floats and (single in ADDING_TO_FIRST or is_reduced):
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
