"""Runs ops with a wrong argument: another axis, epsilon, factor, scale or approximation."""

from math import sqrt
from typing import Any

from torch import Tensor

from nbkit.simulated.call import Call, NotApplicableError, Results
from nbkit.simulated.faults.kinds.kind import Kind

# An op that adds a positive number up to this is taken to add an epsilon: models and optimizers write it so.
LARGEST = 1e-3
# Numbers that an op multiplies something by, 1 if they are left out.
FACTORS = ("alpha", "beta", "value", "weight")
GELUS = {"none": "tanh", "tanh": "none"}


def wrong_axis(call: Call, size: None, memory: dict[Any, Any]) -> Results | None:
    """Returns the op on values read in the order of the neighboring axis, where the reduced axis has an odd size.

    The result keeps its shape: two axes are taken for each other in reading, sizes stay as they are.
    """
    x, dim = call.inputs[0] if call.args else None, call.argument("dim")
    if not isinstance(x, Tensor) or dim is None:
        raise NotApplicableError(f"{call.func} has no argument dim to reduce along")
    axes = [dim] if isinstance(dim, int) else list(dim)
    if x.dim() < 2 or len(axes) >= x.dim() or not axes:
        raise NotApplicableError(f"{call.func} leaves no other axis to take for the one it reduces")
    axis = axes[0] % x.dim()
    if x.shape[axis] % 2 == 0:
        return None
    reduced = {axis % x.dim() for axis in axes}
    neighbour = next(number for number in reversed(range(x.dim())) if number not in reduced)
    read = x.transpose(axis, neighbour).reshape(x.shape)
    return call.rerun({call.func._schema.arguments[0].name: read})


def wrong_epsilon(call: Call, size: float, memory: dict[Any, Any]) -> Results:
    """Returns the op with `size` times its epsilon: an argument `eps`, or the small number that an `add` adds."""
    eps = call.argument("eps")
    if isinstance(eps, float):
        return call.rerun({"eps": eps * size})
    added = call.argument("other") if call.name == "add" else None
    if isinstance(added, float) and 0 < added <= LARGEST:
        return call.rerun({"other": added * size})
    raise NotApplicableError(f"{call.func} has no epsilon: no argument eps, and it adds no number up to {LARGEST:g}")


def ignored_factor(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns the op with 1 in place of a number that it multiplies by: alpha, beta, value, or the weight of lerp."""
    given = {name: call.argument(name) for name in FACTORS}
    numbers = {name: 1 for name, value in given.items() if isinstance(value, int | float) and value != 1}
    if not numbers or call.name.startswith(("fill", "masked_fill", "constant_pad")):
        raise NotApplicableError(f"this {call.func} multiplies by no number other than 1")
    return call.rerun(numbers)


def wrong_scale(call: Call, size: float, memory: dict[Any, Any]) -> Results:
    """Returns attention with `size` times the scale of its scores."""
    query = call.argument("query")
    if not isinstance(query, Tensor) or "scale" not in [one.name for one in call.func._schema.arguments]:
        raise NotApplicableError(f"{call.func} is no attention")
    scale = call.argument("scale")
    return call.rerun({"scale": size * (1 / sqrt(query.shape[-1]) if scale is None else scale)})


def other_gelu(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns the GELU that is made with tanh in place of that with erf, and the other way round."""
    approximation = call.argument("approximate")
    if not call.name.startswith("gelu"):
        raise NotApplicableError(f"{call.func} is no GELU")
    return call.rerun({"approximate": GELUS[approximation]})


def straight_through_gradient(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns the incoming gradient of an elementwise op as it is."""
    gradient = call.inputs[0] if call.args else None
    is_backward = call.name.endswith(("_backward", "_backward_data"))
    if not is_backward or len(call.results) != 1 or not isinstance(gradient, Tensor):
        raise NotApplicableError(f"{call.func} is no backward op with one gradient")
    if gradient.shape != call.results[0].shape:
        raise NotApplicableError(f"the gradients into and out of {call.func} have different shapes")
    return [gradient.to(call.results[0].dtype).clone()]


def strict_comparison(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns the other answer where both sides of a comparison for order are equal."""
    if call.name not in ("le", "lt", "ge", "gt"):
        raise NotApplicableError(f"{call.func} does not compare for order")
    return [call.results[0] ^ (call.argument("self") == call.argument("other"))]


KINDS = (
    Kind(
        "wrong_epsilon",
        wrong_epsilon,
        "the number that keeps a division finite is another one",
        "the factor by which it is too large",
        1000.0,
    ),
    Kind(
        "wrong_axis",
        wrong_axis,
        "a reduction takes another axis for its own where that has an odd size",
        needs="an odd size along the reduced axis",
    ),
    Kind("ignored_factor", ignored_factor, "a number that an op multiplies by, such as alpha, is 1"),
    Kind("wrong_scale", wrong_scale, "the scores of attention have another scale", "the factor that is too much", 1.1),
    Kind("other_gelu", other_gelu, "GELU is made with tanh instead of erf, or the other way round"),
    Kind("straight_through_gradient", straight_through_gradient, "a gradient goes through an op as it is"),
    Kind("strict_comparison", strict_comparison, "a comparison answers otherwise where both sides are equal"),
)
