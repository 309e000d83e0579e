"""Holds the raw record of a step while it runs: plain tuples and integers, turned into frames afterwards."""

from collections.abc import Sequence
from sys import getrecursionlimit
from threading import RLock, _DummyThread, get_ident, local
from threading import enumerate as enumerate_threads
from time import perf_counter_ns
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from nbkit.capture.raw.arguments import Arguments
from nbkit.capture.raw.flat_list import FlatList
from nbkit.capture.raw.native_registry import NativeRegistry
from nbkit.capture.raw.source import OpLocation
from nbkit.capture.raw.tensor_registry import TensorRegistry
from nbkit.capture.raw.vector_math import settle_vector_math

current_node = torch._C._current_autograd_node
next_sequence_number = torch._C._autograd._get_sequence_nr

CodedTexts = tuple[np.ndarray, Sequence[str | None]]  # numbers, -1 for null, and the texts that they count
OpPlaces = dict[str, CodedTexts]  # columns of ops: op, module, phase, source
PLAIN_CODE, OPTIMIZER_CODE, CLOSURE_CODE = 0, 1, 2


class Context(NamedTuple):
    """Holds what stays the same over many ops; a thread holds the current one as a plain tuple."""

    module_call: int  # index into Recording.module_calls, -1 outside
    code: int  # PLAIN_CODE or OPTIMIZER_CODE
    step: int
    thread: int


class OpRecord(NamedTuple):
    """Holds one call of an op: objects, then integers. Each recorder writes the fields in this order."""

    name: Any  # the OpOverload, the API function, or text
    context: Any  # Context
    node_type: Any  # class of the autograd node that ran it, None outside a backward pass; of an API call: whether it
    # returned a tensor
    location: OpLocation | None
    arguments: Arguments | None  # of an aten op
    parent: int  # row in Recording.ops of the API call around, -1 at the top
    sequence: int  # autograd's next sequence number when it ran
    node: int  # sequence number of the autograd node that ran it, or the tensor record it accumulates into; else -1
    start: int  # ns
    end: int
    first_tensor: int  # thread.tensors from here: inputs, then outputs; -1 for API calls
    inputs: int
    outputs: int  # -1 of a call that raised


OP_OBJECTS, OP_INTEGERS = OpRecord._fields[:5], OpRecord._fields[5:]
THREAD_TENSORS = ("record",)  # the field of ThreadState.tensors
NO_NODE: tuple[Any, int, Any] = (None, -1, None)


class ModuleCall(NamedTuple):
    """Describes one forward call of a module."""

    module: int  # index into ModuleCalls.modules
    call: int  # how often that module had been called before
    in_backward: bool  # a checkpointed part, run again during the backward pass
    training: bool  # the mode of the module


class TimeSpans:
    """Collects spans of time, one by one in Python and as a whole from the native recorder; they do not overlap."""

    def __init__(self) -> None:
        self._pairs: list[tuple[int, int]] = []
        self._arrays: list[np.ndarray] = []

    def add(self, start: int, end: int) -> None:
        self._pairs.append((start, end))

    def add_all(self, spans: bytes) -> None:
        """Adds an int64 array, start and end of each span after the other."""
        self._arrays.append(np.frombuffer(spans, dtype=np.int64).reshape(-1, 2))

    def array(self) -> np.ndarray:
        """Returns the spans as (spans, 2), in the order they were added."""
        pairs = np.array(self._pairs, dtype=np.int64).reshape(-1, 2)
        spans: np.ndarray = np.concatenate([pairs, *self._arrays])
        return spans[np.argsort(spans[:, 0], kind="stable")]


class ThreadState:
    """Holds where one thread of the step stands; each op asks for it."""

    __slots__ = (
        "around",
        "context",
        "first_sequence",
        "ident",
        "in_closure",
        "is_of_user",
        "module_call",
        "number",
        "parent",
        "root",
        "tensors",
    )

    def __init__(self, ident: int, number: int, tensors: FlatList, parent: int = -1, is_of_user: bool = True) -> None:
        self.ident = ident
        self.number = number
        self.parent = self.around = parent  # of one of autograd's: what the main thread was last found to wait in
        self.is_of_user = is_of_user  # else one of autograd's for a device
        self.first_sequence = next_sequence_number()
        self.module_call = -1
        self.root = -1
        self.tensors = tensors
        self.in_closure = False  # of an optimizer: what runs is told apart at each API call
        self.context: Any = (-1, PLAIN_CODE, 0, number)


class Recording:
    """Holds everything one optrace has seen so far; `native` is the library whose observer records, None in Python."""

    def __init__(self, native: Any | None = None) -> None:
        settle_vector_math()
        self.native = native
        self.main = ThreadState(get_ident(), 0, self._numbers())
        self.threads = [self.main]  # by number
        self._here = local()  # `state` of the running thread; the number of one that has ended may come back
        self._here.state = self.main
        self._others: dict[int, ThreadState] = {}  # by ident, of threads that Python has not started
        self.recursion_limit = getrecursionlimit()
        self.lock = RLock()  # where several threads are recorded
        # OpRecords. An API call takes its row when it begins, so that calls stand in call order, and writes it when it
        # has ended.
        self.ops: FlatList = (FlatList if native is None else native.OpLog)(OP_OBJECTS, OP_INTEGERS)
        self.registry = TensorRegistry() if native is None else NativeRegistry(native)
        self.module_calls: list[Any] = []  # plain tuples in the order of ModuleCall
        self.step = 0
        self.code = PLAIN_CODE
        self.skipped: dict[str, int] = {}
        # ns, start and end of each reading of values and each run of a reference: the recorder's time, not the step's.
        self.spent = TimeSpans()
        # The autograd node that ran the last op, its number and its class. Held until the backward pass is over, since
        # torch makes a Python object of a node at every question otherwise.
        self.last_node: tuple[Any, int, Any] = NO_NODE
        self.failed_slot: int | None = None  # row in ops of the call that raised
        self.error: BaseException | None = None  # of the call that raised, where that ended the recording
        # When `sequence` of an op was read: within it, when autograd had just made its node, as in a dispatch mode;
        # after it, so that every node that autograd made for it is below; before it.
        self.sequence_read: Literal["within", "after", "before"] = "within" if native is None else "after"
        self.last_sequence = self.main.first_sequence  # when the recording ended
        self.op_places: OpPlaces = {}  # by op_id, once the frames are built
        self.start = perf_counter_ns()
        self.end = self.start

    def thread(self) -> ThreadState:
        """Returns the running thread's state; autograd's device threads work for the call the main thread waits in."""
        state: ThreadState | None = getattr(self._here, "state", None)
        if state is None:
            state = self._here.state = self._met_thread()
        if not state.is_of_user and (self.main.parent, self.step) != (state.around, state.context[2]):
            if state.parent == state.around:  # it runs no call of its own
                state.parent = self.main.parent
            state.around = self.main.parent
            self.update_context(state)
        return state

    def _met_thread(self) -> ThreadState:
        ident = get_ident()
        mine = [thread for thread in enumerate_threads() if thread.ident == ident]
        is_of_user = any(not isinstance(thread, _DummyThread) for thread in mine)
        with self.lock:
            state = None if is_of_user else self._others.get(ident)
            if state is None:
                parent = -1 if is_of_user else self.main.parent
                state = ThreadState(ident, len(self.threads), self._numbers(), parent, is_of_user)
                self.threads.append(state)
                if not is_of_user:  # what is local to it may be gone at its next op
                    self._others[ident] = state
        self.update_context(state)
        return state

    def _numbers(self) -> FlatList:
        kind: Any = FlatList if self.native is None else self.native.NumberLog
        numbers: FlatList = kind((), THREAD_TENSORS)
        return numbers

    def update_context(self, thread: ThreadState) -> None:
        """Brings the thread's context up to date after its module or the optimizer has changed."""
        code = self.code if thread is self.main or not thread.is_of_user else PLAIN_CODE
        thread.in_closure = code == CLOSURE_CODE
        if thread.in_closure:
            # An optimizer's own work runs without gradients, the closure it calls with them.
            code = PLAIN_CODE if torch.is_grad_enabled() else OPTIMIZER_CODE
        thread.context = (thread.module_call, code, self.step, thread.number)

    def skip(self, reason: str, count: int = 1) -> None:
        """Counts something that is not in the frames, so that the trace can say so."""
        self.skipped[reason] = self.skipped.get(reason, 0) + count


def _accumulate_type() -> type:
    # The first use of nbkit, which imports this, may be inside of no_grad() or inference_mode().
    with torch.inference_mode(False), torch.enable_grad():
        x = torch.ones((), requires_grad=True)
        node = x.expand_as(x).grad_fn
    assert node is not None
    return type(node.next_functions[0][0])


ACCUMULATE = _accumulate_type()
