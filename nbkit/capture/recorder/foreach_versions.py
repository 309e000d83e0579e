"""Version counters of what foreach ops write to: autograd tells by them that a saved tensor was changed."""

from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload


def loses_versions(func: OpOverload) -> bool:
    """Whether torch leaves version counters alone when the op runs under a dispatch mode, as any mode makes it.

    Without a mode, a foreach op without a kernel of its own counts the writes of the single ops that it is made of.
    """
    return func._opname.startswith("_foreach_") and any(one.is_write for one in func._schema.arguments)


def counting(run: Callable[..., Any], func: OpOverload) -> Callable[..., Any]:
    """`run` with the counters of the written lists one higher afterwards, where it left them as they were."""
    places = [(place, one.name) for place, one in enumerate(func._schema.arguments) if one.is_write]

    def run_and_count(*args: Any, **kwargs: Any) -> Any:
        lists = [args[place] if place < len(args) else kwargs.get(name) for place, name in places]
        written = [one for tensors in lists for one in tensors or () if not one.is_inference()]
        before = [one._version for one in written]
        out = run(*args, **kwargs)
        # All of them first: two may be views of one tensor, which has one counter.
        left_alone = [one for one, version in zip(written, before, strict=True) if one._version == version]
        for one in left_alone:
            torch.autograd.graph.increment_version(one)
        return out

    return run_and_count
