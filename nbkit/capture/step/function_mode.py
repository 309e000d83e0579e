"""Sees API calls (torch.nn.functional.linear, torch.Tensor.add_), parents of the aten ops, by a function mode."""

from collections.abc import Callable
from sys import _getframe
from threading import get_ident
from time import perf_counter_ns
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch._ops import OpOverload

from nbkit.capture.raw.patching import Patch
from nbkit.capture.raw.pausable_mode import PausableMode
from nbkit.capture.raw.recording import (
    NO_NODE,
    Recording,
    ThreadState,
    next_sequence_number,
)
from nbkit.capture.raw.source import CAPTURE, op_location
from nbkit.compat.torch_versions import HIDES_BACKWARD, shown

GRADIENT = Tensor.grad
METHOD_WRAPPER = type(Tensor.shape.__get__)  # type: ignore[attr-defined]
# After these a tensor is no longer what was noted of it.
RESETTING = frozenset({Tensor.requires_grad_, Tensor.set_, Tensor.resize_, Tensor.resize_as_, Tensor.detach_})
# These ask whether a function mode is on, and leave their fused inference path if so: API calls inside them are not
# recorded where that path could be taken, so that the step computes what it would compute bare.
FUSED_INFERENCE = (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder)


class ApiMode(PausableMode):
    """Records each outermost API call of Python code; torch takes the mode off while the call runs."""

    def __init__(self, recording: Recording) -> None:
        super().__init__()
        self.recording = recording
        # Another mode that knows API calls, below this one, and off where this one is.
        self.below: PausableMode | None = None
        self._getters = 0
        self.backward = Patch(torch.autograd, "backward") if HIDES_BACKWARD else None
        # What looks at results of some functions: gets result, index into Recording.ops, and into its module_calls.
        self.watched: dict[Any, Callable[[Any, int, int], object]] = {}
        self.native: Any = None
        if recording.native is not None:
            kinds = (METHOD_WRAPPER, GRADIENT, OpOverload, CAPTURE, RESETTING, self.watched)
            self.native = recording.native.ApiCalls(recording, *kinds)
        function = self._recorder() if self.native is None else self.native.function()
        self.__torch_function__ = MethodType(function, self)  # type: ignore[method-assign]

    def __enter__(self) -> "ApiMode":
        if (patch := self.backward) is not None:
            patch.install(shown(torch.autograd.backward, lambda *args, **kwargs: patch.before(*args, **kwargs)))
        super().__enter__()
        return self

    @property
    def getters(self) -> int:
        """Returns how many properties of tensors were read or set: calls that are no rows."""
        return self._getters if self.native is None else self.native.getters

    def _recorder(self) -> Callable[..., Any]:
        """Returns __torch_function__ as a closure, as in OpMode; without the native recorder, which does the same."""
        recording, main, forget = self.recording, self.recording.main, self.recording.registry.forget
        ops, rearrange = recording.ops, recording.update_context
        watched = self.watched

        def __torch_function__(_: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if type(func) is METHOD_WRAPPER:  # x.shape, x.grad = y: properties, hundreds a step
                self._getters += 1
                if func.__name__ == "__set__" and func.__self__ is not GRADIENT:
                    forget(args[0])
                return func(*args, **kwargs) if kwargs else func(*args)
            # A recorder runs an op that came from no API call (torch.tensor): the call below it is ours.
            if type(func) is OpOverload and _getframe(1).f_code.co_filename.startswith(CAPTURE):
                return func._op(*args, **(kwargs or {}))
            thread = main if main.ident == get_ident() else recording.thread()
            outer, context = thread.parent, thread.context
            thread.parent = slot = ops.reserve()
            if thread.in_closure:
                rearrange(thread)
            location = op_location(_getframe(1))
            sequence = next_sequence_number()
            keep, outputs = True, -1
            start = perf_counter_ns()
            try:
                out = func(*args, **kwargs) if kwargs else func(*args)
                keep, outputs = isinstance(out, Tensor), 0
            except BaseException:
                # An op inside it that raised stands after it; one before it raised an error that was caught.
                if recording.failed_slot is None or recording.failed_slot < slot:
                    recording.failed_slot = slot
                raise
            finally:
                end = perf_counter_ns()
                # The end of a range may have ended the step of an optimizer around it.
                before = (outer, context) if thread.parent == slot else (thread.parent, thread.context)
                thread.parent, thread.context = before
                recording.last_node = NO_NODE
                ops.put(slot, (func, context, keep, location, None, outer, sequence, -1, start, end, -1, 0, outputs))
            if func in RESETTING:
                forget(args[0])
            if func in watched:
                watched[func](out, slot, thread.module_call)
            return out

        return __torch_function__

    def enter_module(self, module: nn.Module, may_fuse: bool, thread: ThreadState) -> Callable[[], Any] | None:
        """Switches the mode for one module call where that is needed; returns what undoes it.

        It is off inside an API call and inside torch's own optimizers; a module that runs there (a checkpointed part
        run again in the backward pass, an optimizer's closure) is user code again.
        """
        if may_fuse and not module.training:
            return self._step_aside()
        if (thread.parent >= 0 or self.recording.code) and not any(self.pauses) and not self.is_on():
            self._push()
            return self._pop
        return None

    def _step_aside(self) -> Callable[[], Any] | None:
        if not self._pop():
            return None
        below = self.below
        if below is None or not below._pop():
            return self._push

        def come_back() -> None:
            below._push()
            self._push()

        return come_back

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if self.backward is not None:
            self.backward.remove()
        self.recording.last_node = NO_NODE
        # The method of this instance is a cycle, which would live until the next collection; what the native recorder
        # holds may be one for good.
        self._getters, self.native = self.getters, None
        del self.__torch_function__
