"""Sees every aten op, forward and backward, by a dispatch mode; the hot path of a recording."""

from collections.abc import Callable, Sequence
from sys import _getframe
from time import perf_counter_ns
from types import MethodType
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from nbkit.capture.raw.arguments import describer
from nbkit.capture.raw.conj_neg import resolving
from nbkit.capture.raw.recording import (
    ACCUMULATE,
    NO_NODE,
    Recording,
    ThreadState,
    current_node,
    next_sequence_number,
)
from nbkit.capture.raw.source import ENGINE_CODE, OpLocation, node_location, op_location
from nbkit.capture.raw.statistics import Statistics
from nbkit.capture.raw.step_mode import StepMode
from nbkit.capture.raw.tensor_registry import PLAIN
from nbkit.capture.recorder.observer import Observer
from nbkit.capture.recorder.op_forms import (
    calls_others,
    counting,
    is_hidden,
    is_reshaping,
    loses_versions,
    taken_apart,
)

OTHER, TENSOR, SEQUENCE = 0, 1, 2
KINDS: dict[type, int] = (
    dict.fromkeys(PLAIN, TENSOR)
    | {list: SEQUENCE, tuple: SEQUENCE}
    | dict.fromkeys((int, float, bool, str, type(None), torch.Size, torch.dtype, torch.device, torch.layout), OTHER)
)


class OpMode(StepMode):
    """Records each op that reaches it, runs it unchanged and returns what it returned."""

    def __init__(
        self,
        recording: Recording,
        statistics: Statistics | None,
        on_range: Callable[[bool], None],
        observers: Sequence[Observer] = (),
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.recording = recording
        self.on_range = on_range
        self.observers = observers
        self.kinds = dict(KINDS)
        self.runners: dict[int, Callable[..., Any]] = {}
        self.hidden_runners: dict[int, Callable[..., Any]] = {}  # of torch's own queries
        self.made_of_others: set[int] = set()
        # Names of the out= arguments, and positions of the written arguments, of the ops that have them.
        self.out_names: dict[int, frozenset[str]] = {}
        self.written: dict[int, list[int]] = {}
        self.held: list[Any] = []
        self.__torch_dispatch__ = MethodType(self._recorder(statistics), self)  # type: ignore[method-assign]

    def _recorder(self, statistics: Statistics | None) -> Callable[..., Any]:
        """Makes __torch_dispatch__ as a closure: to look each of these names up on self would double its overhead."""
        recording, main, registry = self.recording, self.recording.main, self.recording.registry
        runners, out_names, ops, append_op = self.runners, self.out_names, recording.ops, recording.ops.extend
        known, learn, plain = registry.known, registry.learn, registry.plain
        described = describer(recording.skip)
        locate, note_inputs, note_outputs = self._locator(), self._input_reader(), self._output_reader()

        def __torch_dispatch__(_: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            run = runners.get(id(func))
            if run is None and (run := self._runner(func)) is None:
                return self._hidden(func, args, kwargs or {})
            node = current_node()
            if node is not None:
                thread, location, at_node = locate(node)
            else:
                thread, at_node = main, NO_NODE
                location = op_location(_getframe(1)) if main.parent < 0 else None
            tensors = thread.tensors
            first = len(tensors)
            note_inputs(func, tensors, args, kwargs)
            inputs = len(tensors) - first
            if statistics is not None:
                statistics.note(thread, first, (args, kwargs), out_names.get(id(func), ()))
            if registry.has_complex:
                run = resolving(run)
            sequence, has_raised = next_sequence_number(), False
            start = perf_counter_ns()
            try:
                out = run(*args, **kwargs) if kwargs else run(*args)
            except BaseException:
                end = perf_counter_ns()
                recording.failed_slot, has_raised = ops.row_count, True
                raise
            else:
                end = perf_counter_ns()
                try:
                    if statistics is None and type(out) in plain and id(out) not in known:
                        tensors.append(learn(out, True))
                    else:
                        note_outputs(func, thread, args, out, statistics)
                except Exception as error:  # the recorder's own trouble must never become the step's
                    del tensors[first + inputs :]
                    recording.skip(f"outputs not described ({type(error).__name__})")
            finally:
                outputs, arguments = -1 if has_raised else len(tensors) - first - inputs, described(func, args, kwargs)
                objects = func, thread.context, at_node[2], location, arguments
                append_op((*objects, thread.parent, sequence, at_node[1], start, end, first, inputs, outputs))
            return out

        return __torch_dispatch__

    def _locator(self) -> Callable[[Any], tuple[ThreadState, OpLocation | None, Any]]:
        """Makes the closure that says of an op that an autograd node runs: its thread, its place in code, its node."""
        recording, described = self.recording, self._described

        def locate(node: Any) -> tuple[ThreadState, OpLocation | None, Any]:
            thread, location, at_node = recording.main, None, recording.last_node
            if at_node[0] is not node:
                at_node = described(node)
                # A node that adds to a gradient holds the leaf, which may be of the step's own making.
                if at_node[2] is not ACCUMULATE:
                    recording.last_node = at_node
            try:
                frame = _getframe(2)
            except ValueError:  # a thread that runs no Python: one of autograd's for a device
                return recording.thread(), None, at_node
            if frame.f_code is not ENGINE_CODE:  # a custom Function, a hook
                thread, location = recording.thread(), node_location(frame)
            return thread, location, at_node

        return locate

    def _input_reader(self) -> Callable[..., None]:  # noqa: C901  the hot path, written out
        """Makes the closure that puts the tensors that an op takes on the list of its thread."""
        recording, registry, kinds, out_names = self.recording, self.recording.registry, self.kinds, self.out_names
        known, number_of, note_any, plain = registry.known, registry.number, self._note_any, registry.plain

        def note_inputs(func: Any, tensors: list[int], args: Any, kwargs: Any) -> None:  # noqa: C901
            first = len(tensors)
            try:
                for arg in args:
                    kind = type(arg)
                    if kind in plain:
                        entry = known.get(id(arg))
                        held = entry[0]() if entry is not None else None
                        if held is not None and (held is arg or held is arg.untyped_storage()):
                            tensors.append(entry[1])  # type: ignore[index]  # held came from it
                        else:
                            tensors.append(number_of(arg))
                    elif kind is list:
                        if arg and type(arg[0]) is not int:
                            note_any(tensors, arg, False)
                    elif kinds.get(kind, TENSOR):
                        note_any(tensors, arg, False)
                if kwargs:
                    outs = out_names.get(id(func), ())
                    for name, arg in kwargs.items():
                        if kinds.get(type(arg), TENSOR) and name not in outs:
                            note_any(tensors, arg, False)
            except Exception as error:  # the recorder's own trouble must never become the step's
                del tensors[first:]
                recording.skip(f"inputs not described ({type(error).__name__})")

        return note_inputs

    def _output_reader(self) -> Callable[..., None]:
        """Makes the closure that puts the tensors that an op returned, or wrote to, on the list of its thread."""
        written, note_any = self.written, self._note_any
        known, learn = self.recording.registry.known, self.recording.registry.learn

        def note_outputs(func: Any, thread: ThreadState, args: Any, out: Any, statistics: Statistics | None) -> None:
            tensors, made = thread.tensors, out
            middle = len(tensors)
            if type(out) is Tensor:
                entry = known.get(id(out))
                tensors.append(entry[1] if entry is not None and entry[0]() is out else learn(out, True))
            elif out is None and id(func) in written:
                made = [args[position] for position in written[id(func)] if position < len(args)]
                note_any(tensors, made, False)
            else:
                note_any(tensors, out, True)
            if statistics is not None:
                statistics.note_made(func, thread, middle, made)

        return note_outputs

    def _runner(self, func: Any) -> Callable[..., Any] | None:
        """Returns what runs an op met for the first time; None for torch's own queries, no work of the step."""
        if id(func) in self.hidden_runners or id(func) in self.made_of_others:
            return None
        # Raising in a dispatch mode from a prim op under FakeTensorMode aborts the process: those are left alone.
        if isinstance(func, OpOverload) and is_hidden(func):
            return None
        # Autograd takes such ops apart before they come here, but for inference mode.
        if torch.is_inference_mode_enabled() and calls_others(func):
            self.made_of_others.add(id(func))
            return None
        self.held.append(func)  # the id of a freed op could come back
        run: Callable[..., Any] = func
        if isinstance(func, OpOverload):
            run = func._op
            if is_reshaping(func):
                run = self._reshaping(run)
            if loses_versions(func):
                run = counting(run, func)
            arguments = func._schema.arguments
            if names := frozenset(argument.name for argument in arguments if argument.is_out):
                self.out_names[id(func)] = names
            if not func._schema.returns:
                self.written[id(func)] = [number for number, argument in enumerate(arguments) if argument.is_write]
        else:
            self.recording.skip(f"ops inside {func.name()}: torch runs them below the recorder")
        run = self.runners[id(func)] = self._observed(func, run)
        return run

    def _observed(self, func: Any, run: Callable[..., Any]) -> Callable[..., Any]:
        for observer in self.observers:
            run = observer.around(func, run)
        return run

    def _reshaping(self, run: Callable[..., Any]) -> Callable[..., Any]:
        def run_and_forget(*args: Any, **kwargs: Any) -> Any:
            out = run(*args, **kwargs)
            self.recording.registry.forget(args[0])
            return out

        return run_and_forget

    def _described(self, node: Any) -> tuple[Any, int, type]:
        kind = type(node)
        return node, self.recording.registry.number(node.variable) if kind is ACCUMULATE else node._sequence_nr(), kind

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        # The method of this instance is a cycle, which would live until the next collection.
        del self.__torch_dispatch__

    def _hidden(self, func: Any, args: Any, kwargs: Any) -> Any:
        if (run := self.hidden_runners.get(id(func))) is not None:
            return run(*args, **kwargs)
        if id(func) in self.made_of_others:
            return taken_apart(self, func, args, kwargs)
        run = self._observed(func, func)
        out = run(*args, **kwargs)
        if func.namespace == "profiler":
            self.on_range(func._opname.startswith("_record_function_enter"))
        else:
            self.held.append(func)
            self.hidden_runners[id(func)] = run
        return out

    def _note_any(self, tensors: list[int], value: Any, fresh: bool) -> None:
        kind = self.kinds.get(type(value))
        if kind is None:
            kind = TENSOR if isinstance(value, Tensor) else SEQUENCE if isinstance(value, (list, tuple)) else OTHER
            self.kinds[type(value)] = kind
        if kind == TENSOR:
            tensors.append(self.recording.registry.number(value, fresh))
        elif kind == SEQUENCE:
            for item in value:
                self._note_any(tensors, item, fresh)
