"""Calls a model once more without a recorder: does it return what it returned while its ops were recorded?"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from nbkit.capture.executions.arrays import Array, array_of
from nbkit.capture.executions.calls import Call
from nbkit.capture.executions.names import named_outputs
from nbkit.errors import first_line
from nbkit.numerics.blocks import same_bits
from nbkit.trace.executions.execution import Execution, Returned

Outputs = dict[str, Array]
COMMUNICATING = ("c10d.", "_c10d_functional")
COMMUNICATES = "The model was not called without a recording, as it communicates with other processes."
# Beyond these torch.compile runs Python's code without a word; before torch 2.7 their names were others.
LIMITS, MANY = ("cache_size_limit", "recompile_limit", "accumulated_recompile_limit"), 1 << 16
OTHER_DRAWS = "What compiled code returns was not compared with what was recorded: it draws other random numbers."


@contextmanager
def without_limits() -> Iterator[None]:
    """Has autocast cast each time, and torch.compile compile each time, however often a model was aligned before.

    The casts that autocast keeps for a block belong to the graph of an earlier run.
    """
    is_enabled = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        with _recompiling():
            yield
    finally:
        torch.set_autocast_cache_enabled(is_enabled)


def _recompiling() -> AbstractContextManager[object]:
    if "torch._dynamo" not in sys.modules:
        return nullcontext()
    config: Any = sys.modules["torch._dynamo"].config
    limits: AbstractContextManager[object] = config.patch({name: MANY for name in LIMITS if hasattr(config, name)})
    return limits


def not_fused() -> AbstractContextManager[object]:
    """Has compiled parts of a model run op by op."""
    if "torch._dynamo" not in sys.modules:
        return nullcontext()
    stance: AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
    return stance


def with_returned(
    execution: Execution, calls: Sequence[Call], call: Callable[[], Any], around: AbstractContextManager[object]
) -> Execution:
    """Returns the execution with what `call` returns without a recorder, if that has other bits than what was recorded.

    `around` puts back what a call changes. A call that gives other bits runs again, which tells how much it varies, and
    once without compiled parts, which tells whether these make the difference.
    """
    if execution.error or not execution.outputs:
        return execution
    if any(str(one.func).startswith(COMMUNICATING) for one in calls):
        return replace(execution, notes=(*execution.notes, COMMUNICATES))
    try:
        first = _outputs(call, around)
        recorded = {name: execution.value(number) for name, number in execution.outputs.items()}
        other = {name: value for name, value in first.items() if _is_other(recorded.get(name), value)}
        if not other:
            return execution
        second = _outputs(call, around)
        with not_fused():
            eager = _outputs(call, around) if "torch._dynamo" in sys.modules else first
    except Exception as error:
        reason = f"A call without a recording failed: {type(error).__name__}: {first_line(error)}"
        return replace(execution, notes=(*execution.notes, reason))
    is_compiled = not any(_is_other(recorded[name], eager[name]) for name in other if name in eager)
    if is_compiled and any(one.is_random for one in calls):
        return replace(execution, notes=(*execution.notes, OTHER_DRAWS))
    how = "compiled" if is_compiled else "not recorded"
    returned = {name: Returned(value, second.get(name), how) for name, value in other.items()}
    return replace(execution, returned=returned)


def _outputs(call: Callable[[], Any], around: AbstractContextManager[object]) -> Outputs:
    with around:
        known = {name: array_of(tensor) for name, tensor in named_outputs(call())}
        return {name: np.array(value, copy=True, order="C") for name, value in known.items() if value is not None}


def _is_other(recorded: Array | None, value: Array) -> bool:
    """Returns whether a known value has another shape or other bits."""
    if recorded is None:
        return False
    return recorded.shape != value.shape or recorded.dtype != value.dtype or not same_bits(recorded, value)
