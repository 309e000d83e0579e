"""Tells the ops that take more than running and writing a row."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch._C import _pop_torch_dispatch_stack, _push_on_torch_dispatch_stack
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from nbkit.ops.families import RESIZING

HIDDEN_NAMESPACES = ("prim", "profiler")


def is_hidden(func: OpOverload) -> bool:
    """Returns whether an op is a query of torch's own, no work of the step."""
    return func.namespace in HIDDEN_NAMESPACES


def is_reshaping(func: OpOverload) -> bool:
    """Returns whether an op changes a tensor's metadata in place."""
    return func._opname in RESIZING


def loses_versions(func: OpOverload) -> bool:
    """Returns whether torch leaves version counters alone when the op runs under a dispatch mode, as any mode makes it.

    Without a mode, a foreach op without a kernel of its own counts the writes of the single ops that it is made of.
    """
    return func._opname.startswith("_foreach_") and any(argument.is_write for argument in func._schema.arguments)


def counting(run: Callable[..., Any], func: OpOverload) -> Callable[..., Any]:
    """Returns `run` with the counters of the written lists one higher afterwards, where it left them as they were."""
    positions = [(index, argument.name) for index, argument in enumerate(func._schema.arguments) if argument.is_write]

    def run_and_count(*args: Any, **kwargs: Any) -> Any:
        lists = [args[index] if index < len(args) else kwargs.get(name) for index, name in positions]
        written = [tensor for tensors in lists for tensor in tensors or () if not tensor.is_inference()]
        before = [tensor._version for tensor in written]
        out = run(*args, **kwargs)
        # All of them first: two may be views of one tensor, which has one counter.
        left_alone = [tensor for tensor, version in zip(written, before, strict=True) if tensor._version == version]
        for tensor in left_alone:
            torch.autograd.graph.increment_version(tensor)
        return out

    return run_and_count


@cache
def calls_others(func: Any) -> bool:
    """Returns whether an op of torch has no kernel of its own and is made of other ops."""
    if not isinstance(func, OpOverload):
        return False
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return has_kernel(func.name(), "CompositeImplicitAutograd") and not has_kernel(func.name(), "CPU")


def taken_apart(mode: TorchDispatchMode, func: OpOverload, args: Any, kwargs: Any) -> Any:
    """Runs, in the handler of a mode, an op that only calls others, so that the mode sees those.

    `func.decompose()` would take torch's decomposition in Python where there is one, which gives other bits.
    """
    _push_on_torch_dispatch_stack(mode)
    try:
        return func._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
    finally:
        _pop_torch_dispatch_stack(None)
