"""The raw record of a step while it runs: plain tuples and integers, turned into frames afterwards."""

from dataclasses import dataclass, field
from threading import get_ident
from time import perf_counter_ns
from typing import Any, NamedTuple

import torch

from nbkit.capture.source import Place
from nbkit.capture.tensor_registry import TensorRegistry

next_sequence_number = torch._C._autograd._get_sequence_nr

PLAIN_CODE, OPTIMIZER_CODE, CLOSURE_CODE = 0, 1, 2


class OpRecord(NamedTuple):
    """One call of an op. The hot path appends plain tuples in this order, which is what a NamedTuple costs too much for."""

    name: Any  # the OpOverload, the API function, or text
    parent: int  # slot of the API call around it, -1 at the top
    module_call: int  # index into Recording.module_calls, -1 outside
    sequence: int  # autograd's next sequence number when it ran
    node: Any  # the autograd node that ran it: (sequence number, class), None outside a backward pass
    start: int  # ns
    end: int
    place: Place | None
    thread: "ThreadState"
    first_tensor: int  # thread.tensors from here: inputs, then outputs
    inputs: int
    outputs: int
    code: int  # PLAIN_CODE or OPTIMIZER_CODE
    step: int


class ModuleCall(NamedTuple):
    """One forward call of a module."""

    module: int  # index into ModuleCalls.modules
    call: int  # how often that module had been called before
    in_backward: bool  # a checkpointed part, run again during the backward pass


@dataclass(eq=False)
class ThreadState:
    """Where one thread of the step stands."""

    ident: int
    number: int
    parent: int = -1
    module_call: int = -1
    root: int = -1
    tensors: list[int] = field(default_factory=list)


class Recording:
    """Everything one optrace has seen so far."""

    def __init__(self) -> None:
        self.main = ThreadState(get_ident(), 0)
        self.threads = {self.main.ident: self.main}
        # OpRecord-shaped tuples; an API call reserves its slot when it begins, so that rows stand in call order.
        self.ops: list[Any] = []
        self.api_slots: list[int] = []
        self.registry = TensorRegistry()
        self.module_calls: list[ModuleCall] = []
        self.step = 0
        self.code = PLAIN_CODE
        self.skipped: dict[str, int] = {}
        self.failed_slot: int | None = None
        self.first_sequence = next_sequence_number()
        self.start = perf_counter_ns()
        self.end = self.start

    def thread(self) -> ThreadState:
        """State of the running thread; autograd's device threads work for the call that the main thread waits in."""
        ident = get_ident()
        state = self.threads.get(ident)
        if state is None:
            state = self.threads[ident] = ThreadState(ident, len(self.threads), self.main.parent)
        return state

    def skip(self, reason: str, count: int = 1) -> None:
        """Count something that is not in the frames, so that the trace can say so."""
        self.skipped[reason] = self.skipped.get(reason, 0) + count
