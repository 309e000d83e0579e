"""Records calls of torch.distributed while a step runs: what each gives, in which group, and how long it waited."""

import inspect
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from sys import _getframe
from threading import local
from time import perf_counter_ns
from types import FunctionType
from typing import Any
from weakref import ref

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._profiler import _RecordFunctionFast

from nbkit.capture.distributed.process import Group, described_group
from nbkit.capture.raw.patching import Body, Patch
from nbkit.capture.raw.source import CodeLocation, user_location

COLLECTIVE_MARK = "nbkit collective "
# The parameter that holds what this process gives (to receive: what it gets).
SENT = {
    "all_reduce": "tensor",
    "all_reduce_coalesced": "tensors",
    "all_gather": "tensor",
    "all_gather_into_tensor": "input_tensor",
    "all_gather_single": "input_tensor",
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
    "reduce_scatter_single": "input",
    "reduce_scatter_tensor": "input",
    "scatter": "tensor",
    "send": "tensor",
}
# The parameters that name another process: by its global rank, by its rank in the group.
PEERS, MEMBERS = ("dst", "src"), ("group_dst", "group_src")


@dataclass
class ApiCall:
    """Holds one call of torch.distributed; times are ns of perf_counter_ns()."""

    name: str
    size_bytes: int | None = None
    group: Group | None = None
    peer: int | None = None
    shapes: list[list[int]] | None = None
    dtypes: list[str] | None = None
    start_ns: int = 0
    end_ns: int = 0
    location: CodeLocation | None = None
    waits: list[tuple[int, int, bool]] = field(default_factory=list)  # start, end, whether it was over before


class ApiCalls:
    """Records calls of collectives while installed; what C++ starts (DDP's reducer) is not seen.

    `with_ranges` puts a range of torch.profiler's around each.
    """

    def __init__(self, with_ranges: bool = False) -> None:
        self.calls: dict[int, ApiCall] = {}  # by number
        self.numbers = count()  # any thread may call
        self.inside = local()  # `call`, the one that runs: recv() runs irecv()
        self.works: dict[int, tuple[Any, ApiCall]] = {}  # by id: a weak reference, and what made it
        self.with_ranges = with_ranges
        self.patches = [(Patch(body, "run"), self._recorded) for body in _bodies()]
        if dist.is_available():
            self.patches.append((Patch(torch._C._distributed_c10d.Work, "wait"), self._timed))

    def install(self) -> None:
        for patch, make in self.patches:
            patch.install(make(patch))

    def remove(self) -> None:
        for patch, _ in self.patches:
            patch.remove()
        self.works.clear()

    def _recorded(self, patch: Patch) -> Callable[..., Any]:
        function = patch.holder.original
        signature, name = inspect.signature(function), function.__name__

        def call(*args: Any, **kwargs: Any) -> Any:
            if getattr(self.inside, "call", None) is not None:
                return patch.before(*args, **kwargs)
            number = next(self.numbers)
            made = self.calls[number] = ApiCall(f"torch.distributed.{name}", location=user_location(_getframe(1)))
            with suppress(Exception):  # a call that torch refuses: its own words are for the user
                _describe(made, name, signature.bind(*args, **kwargs).arguments)
            self.inside.call = made
            made.start_ns = perf_counter_ns()
            try:
                with _RecordFunctionFast(f"{COLLECTIVE_MARK}{number}") if self.with_ranges else nullcontext():
                    work = patch.before(*args, **kwargs)
            finally:
                made.end_ns = perf_counter_ns()
                self.inside.call = None
            if isinstance(work, dist.Work):
                self.works[id(work)] = ref(work), made
            return work

        return call

    def _timed(self, patch: Patch) -> Callable[..., Any]:
        def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
            call = getattr(self.inside, "call", None) or self._maker(work)
            if call is None:
                return patch.before(work, *args, **kwargs)
            was_over, start = work.is_completed(), perf_counter_ns()
            try:
                return patch.before(work, *args, **kwargs)
            finally:
                call.waits.append((start, perf_counter_ns(), was_over))

        return wait

    def _maker(self, work: Any) -> ApiCall | None:
        held, call = self.works.get(id(work), (None, None))
        return call if held is not None and held() is work else None


@cache
def _bodies() -> list[Body]:
    """Returns the bodies of the functions: one for each, of all recordings, so that these may end in any order."""
    functions = (getattr(dist, name, None) for name in SENT)
    return [Body(function) for function in functions if isinstance(function, FunctionType)]


def _describe(call: ApiCall, name: str, arguments: dict[str, Any]) -> None:
    """Fills in what the arguments of a call tell."""
    given = arguments.get(SENT[name])
    tensors = [given] if isinstance(given, Tensor) else given
    if isinstance(tensors, list | tuple) and all(isinstance(tensor, Tensor) for tensor in tensors):
        call.size_bytes = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        call.shapes = [list(tensor.shape) for tensor in tensors]
        call.dtypes = [str(tensor.dtype).removeprefix("torch.") for tensor in tensors]
    call.group = described_group(arguments.get("group"))
    named = [arguments[word] for word in PEERS if isinstance(arguments.get(word), int)]
    members = [call.group.rank_of(arguments.get(word)) for word in MEMBERS]
    call.peer = next((rank for rank in [*named, *members] if rank is not None), None)
