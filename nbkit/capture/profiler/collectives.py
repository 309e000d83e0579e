"""Records collectives on the profiler's timeline: calls of torch.distributed, the bytes they move and their group."""

import inspect
from collections.abc import Callable
from functools import cache
from itertools import count
from threading import local
from types import FunctionType
from typing import Any

import torch.distributed as dist
from torch import Tensor
from torch._C._profiler import _RecordFunctionFast

from nbkit.capture.raw.patching import Body, Patch

COLLECTIVE_MARK = "nbkit collective "
# The parameter that holds what this process gives (to receive: what it gets).
SENT = {
    "all_reduce": "tensor",
    "all_reduce_coalesced": "tensors",
    "all_gather": "tensor",
    "all_gather_into_tensor": "input_tensor",
    "all_to_all": "input_tensor_list",
    "all_to_all_single": "input",
    "barrier": "",
    "broadcast": "tensor",
    "gather": "tensor",
    "irecv": "tensor",
    "isend": "tensor",
    "recv": "tensor",
    "reduce": "tensor",
    "reduce_scatter": "input_list",
    "reduce_scatter_tensor": "input",
    "scatter": "tensor",
    "send": "tensor",
}


class Collectives:
    """Puts a range around every call of a collective while installed; what C++ starts (DDP's reducer) is not seen."""

    def __init__(self) -> None:
        self.calls: dict[int, tuple[str, int | None, str | None]] = {}  # by number: name, bytes, group
        self.numbers = count()  # any thread may call
        self.inside = local()  # of a call: recv() runs irecv()
        self.patches = [Patch(body, "run") for body in _bodies()]

    def install(self) -> None:
        for patch in self.patches:
            patch.install(self._recorded(patch))

    def remove(self) -> None:
        for patch in self.patches:
            patch.remove()

    def _recorded(self, patch: Patch) -> Callable[..., Any]:
        function = patch.holder.original
        signature, name = inspect.signature(function), function.__name__

        def call(*args: Any, **kwargs: Any) -> Any:
            if getattr(self.inside, "call", False):
                return patch.before(*args, **kwargs)
            number = next(self.numbers)
            try:
                arguments = signature.bind(*args, **kwargs).arguments
                described = (size_bytes(arguments.get(SENT[name])), group_name(arguments.get("group")))
            except Exception:  # a call that torch refuses: its own words are for the user
                described = (None, None)
            self.calls[number] = (f"torch.distributed.{name}", *described)
            self.inside.call = True
            try:
                with _RecordFunctionFast(f"{COLLECTIVE_MARK}{number}"):
                    return patch.before(*args, **kwargs)
            finally:
                self.inside.call = False

        return call


@cache
def _bodies() -> list[Body]:
    """Returns the bodies of the functions: one for each, of all recordings, so that these may end in any order."""
    functions = (getattr(dist, name, None) for name in SENT)
    return [Body(function) for function in functions if isinstance(function, FunctionType)]


def size_bytes(value: Any) -> int | None:
    """Returns the bytes of a tensor or of a list of them; None for anything else."""
    if isinstance(value, Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, list | tuple) and all(isinstance(item, Tensor) for item in value):
        return int(sum(item.numel() * item.element_size() for item in value))
    return None


def group_name(group: Any) -> str | None:
    """Returns description and ranks of a process group: "default_pg (2 ranks)"."""
    process_group = group if group is not None else dist.distributed_c10d._get_default_group()
    words = getattr(process_group, "group_desc", None) or getattr(process_group, "group_name", None)
    ranks = dist.get_world_size(group)
    return f"{words} ({ranks} rank{'s' if ranks != 1 else ''})" if words and ranks > 0 else words
