"""A wrong epsilon: the small number that keeps a division or a root finite."""

from typing import Any

from nbkit.simulated.call import Call, NotApplicableError, Results

# An op that adds a positive number up to this is taken to add an epsilon: models and optimizers write it so.
LARGEST = 1e-3


def wrong_epsilon(call: Call, size: float, memory: dict[Any, Any]) -> Results:
    """The op with `size` times its epsilon: an argument `eps`, or the small number that an `add` adds."""
    eps = call.argument("eps")
    if isinstance(eps, float):
        return call.rerun({"eps": eps * size})
    added = call.argument("other") if call.name == "add" else None
    if isinstance(added, float) and 0 < added <= LARGEST:
        return call.rerun({"other": added * size})
    raise NotApplicableError(f"{call.func} has no epsilon: no argument eps, and it adds no number up to {LARGEST:g}")
