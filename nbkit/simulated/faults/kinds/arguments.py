"""Runs ops with a wrong argument: another axis, another epsilon."""

from typing import Any

from torch import Tensor

from nbkit.simulated.call import Call, NotApplicableError, Results

# An op that adds a positive number up to this is taken to add an epsilon: models and optimizers write it so.
LARGEST = 1e-3


def wrong_axis(call: Call, size: None, memory: dict[Any, Any]) -> Results | None:
    """Returns the op on values read in the order of the neighbouring axis, where the reduced axis has an odd size.

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
