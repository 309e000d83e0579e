"""Faults of memory: a write that never arrives, a result that is still the one before."""

from typing import Any

from nbkit.simulated.call import Call, NotApplicableError, Results


def dropped_write(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """The tensors that the op writes into as they were before."""
    if not call.before:
        raise NotApplicableError(f"{call.func} writes into none of its inputs")
    return [*call.before.values(), *call.results[len(call.before) :]]


def stale_result(call: Call, size: None, memory: dict[Any, Any]) -> Results | None:
    """The results of the earlier call of the same op with the same shapes and dtypes; None for the first."""
    key = (call.func, *((tuple(result.shape), result.dtype) for result in call.results))
    earlier: Results | None = memory.get(key)
    memory[key] = [result.clone() for result in call.results]
    return earlier
