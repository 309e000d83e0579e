"""The dispatch mode that sees every aten op, forward and backward; the hot path of a recording."""

from collections.abc import Callable
from sys import _getframe
from time import perf_counter_ns
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.autograd import graph
from torch.utils._python_dispatch import TorchDispatchMode

from nbkit.capture.recording import CLOSURE_CODE, Recording, next_sequence_number
from nbkit.capture.source import Place, user_place
from nbkit.capture.statistics import Statistics
from nbkit.capture.tensor_registry import PLAIN

current_node = torch._C._current_autograd_node
# Ops that take in-place what a tensor's metadata are, so that what is known of it must be read again.
RESHAPING = frozenset(
    "resize_ resize_as_ set_ t_ transpose_ swapaxes_ swapdims_ squeeze_ unsqueeze_ as_strided_ resize_as_sparse_ "
    "sparse_resize_ sparse_resize_and_clear_ _coalesced_ set_data rename_".split()
)
OTHER, TENSOR, SEQUENCE = 0, 1, 2
KINDS: dict[type, int] = {kind: TENSOR for kind in PLAIN} | {list: SEQUENCE, tuple: SEQUENCE} | {
    kind: OTHER for kind in (int, float, bool, str, type(None), torch.Size, torch.dtype, torch.device, torch.layout)
}


class OpMode(TorchDispatchMode):
    """Records each op that reaches it, runs it unchanged and returns what it returned."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # The default wraps __torch_dispatch__ in torch._dynamo.disable, which costs 2 us per op.
        return False

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        # Otherwise torch.compile falls back to eager under this mode, and the step computes something else.
        return True

    def __init__(self, recording: Recording, statistics: Statistics | None, on_profiler_op: Callable[..., None]) -> None:
        super().__init__()
        self.recording = recording
        self.statistics = statistics
        self.on_profiler_op = on_profiler_op
        self.kinds = dict(KINDS)
        self.runners: dict[int, Callable[..., Any]] = {}
        self.out_names: dict[int, frozenset[str]] = {}
        self.held: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        run = self.runners.get(id(func))
        if run is None:
            run = self._runner(func)
            if run is None:
                return self._hidden(func, args, kwargs or {})
        recording = self.recording
        node = current_node()
        thread = recording.main if node is None else recording.thread()
        tensors = thread.tensors
        first = len(tensors)
        known = recording.registry.known
        kinds = self.kinds
        for arg in args:
            kind = kinds.get(type(arg))
            if kind == TENSOR:
                # _note, written out: it runs for most tensors of a step.
                entry = known.get(id(arg))
                if entry is not None and entry[0]() is arg:
                    tensors.append(entry[1])
                else:
                    self._note(tensors, arg, False)
            elif kind is None or (kind == SEQUENCE and arg and type(arg[0]) is not int):
                self._note_any(tensors, arg, False)
        if kwargs:
            out_names = self.out_names.get(id(func), ())
            for name, arg in kwargs.items():
                if kinds.get(type(arg), TENSOR) and name not in out_names:
                    self._note_any(tensors, arg, False)
        inputs = len(tensors) - first
        if self.statistics is not None:
            self.statistics.note(thread, first, (args, kwargs), self.out_names.get(id(func), ()))
        node_key: Any = None
        if node is not None:
            node_key = self._node_key(node)
            place = self._backward_place(_getframe(1))
        else:
            place = user_place(_getframe(1)) if thread.parent < 0 else None
        code = recording.code
        if code == CLOSURE_CODE:
            code = not torch.is_grad_enabled()
        sequence = next_sequence_number()
        start = perf_counter_ns()
        try:
            out = run(*args, **kwargs) if kwargs else run(*args)
            end = perf_counter_ns()
            middle = len(tensors)
            if kinds.get(type(out)) == TENSOR:
                entry = known.get(id(out))
                if entry is not None and entry[0]() is out:
                    tensors.append(entry[1])
                else:
                    self._note(tensors, out, True)
            else:
                self._note_any(tensors, out, True)
            if self.statistics is not None:
                self.statistics.note(thread, middle, out, ())
        except BaseException:
            end = perf_counter_ns()
            recording.failed_slot = len(recording.ops)
            raise
        finally:
            recording.ops.append(
                (
                    func,
                    thread.parent,
                    thread.module_call,
                    sequence,
                    node_key,
                    start,
                    end,
                    place,
                    thread,
                    first,
                    inputs,
                    len(tensors) - first - inputs,
                    code,
                    recording.step,
                )
            )
        return out

    def _runner(self, func: Any) -> Callable[..., Any] | None:
        """What runs an op met for the first time; None for ops that are torch's own questions, not the step's work."""
        # Raising in a dispatch mode from a prim op under FakeTensorMode aborts the process: those are left alone.
        if isinstance(func, OpOverload) and func.namespace in ("prim", "profiler"):
            return None
        self.held.append(func)  # ids of freed ops could come back
        run: Callable[..., Any] = func
        if isinstance(func, OpOverload):
            run = func._op
            if func._opname in RESHAPING:
                run = self._reshaping(run)
            if names := frozenset(argument.name for argument in func._schema.arguments if argument.is_out):
                self.out_names[id(func)] = names
        else:
            self.recording.skip(f"ops inside {func.name()}: torch runs them below the recorder")
        self.runners[id(func)] = run
        return run

    def _reshaping(self, run: Callable[..., Any]) -> Callable[..., Any]:
        def run_and_forget(*args: Any, **kwargs: Any) -> Any:
            out = run(*args, **kwargs)
            self.recording.registry.forget(args[0])
            return out

        return run_and_forget

    def _hidden(self, func: Any, args: Any, kwargs: Any) -> Any:
        out = func(*args, **kwargs)
        if func.namespace == "profiler":
            self.on_profiler_op(func)
        return out

    def _node_key(self, node: Any) -> Any:
        kind = type(node)
        if kind.__name__ != "AccumulateGrad":
            return node._sequence_nr(), kind
        # It has no forward op, but the parameter whose gradient it adds to has a module.
        held: list[int] = []
        self._note(held, node.variable, False)
        return -1 - held[0], kind

    def _backward_place(self, frame: FrameType | None) -> Place | None:
        """Where Python code running inside a backward pass stands; None for ops that the engine itself runs."""
        if frame is None or frame.f_code is ENGINE_CODE:
            return None
        return user_place(frame)

    def _note(self, tensors: list[int], tensor: Tensor, fresh: bool) -> None:
        registry = self.recording.registry
        entry = registry.known.get(id(tensor))
        if entry is not None:
            held = entry[0]()
            if held is tensor or (held is not None and type(tensor) in PLAIN and held is tensor.untyped_storage()):
                tensors.append(entry[1])
                return
        tensors.append(registry.learn(tensor, fresh))

    def _note_any(self, tensors: list[int], value: Any, fresh: bool) -> None:
        kind = self.kinds.get(type(value))
        if kind is None:
            kind = TENSOR if isinstance(value, Tensor) else SEQUENCE if isinstance(value, (list, tuple)) else OTHER
            self.kinds[type(value)] = kind
        if kind == TENSOR:
            self._note(tensors, value, fresh)
        elif kind == SEQUENCE:
            for item in value:
                self._note_any(tensors, item, fresh)


ENGINE_CODE = graph._engine_run_backward.__code__
