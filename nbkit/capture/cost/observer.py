"""Adds to a recording what its step costs: FLOPs and bytes of each op, memory over time, tensors saved for backward."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn import Parameter

from nbkit.capture.cost.fake_step import FakeStep
from nbkit.capture.cost.frames import costs_frame, memory_frames, saved_frame
from nbkit.capture.cost.left_as_it_was import LeftAsItWas
from nbkit.capture.cost.module_rows import module_costs
from nbkit.capture.cost.op_costs import OpCosts
from nbkit.capture.cost.saved_tensors import SavedTensors
from nbkit.capture.cost.storages import BEFORE, BUFFER, GRADIENT, INPUT, PARAMETER, STATE, TEMPORARY, Storages
from nbkit.capture.raw.patching import Patch
from nbkit.capture.raw.recording import ACCUMULATE, NOTHING_YET, OP_FIELDS, OPTIMIZER_CODE, Recording, current_node
from nbkit.capture.recorder.observer import Frames, Meta, Observer
from nbkit.capture.step.module_calls import ModuleCalls
from nbkit.devices.device import Device
from nbkit.devices.roofline import with_times
from nbkit.trace.trace import Trace

DEVICE = torch.ops.prim.device.default
ADD = torch.ops.aten.add.Tensor


class CostObserver(Observer):
    """Runs the step of a recording on shapes, counts, and predicts times on a device if it has one."""

    def __init__(self, device: Device | None = None) -> None:
        self.device = device

    @contextmanager
    def below(self, recording: Recording, modules: ModuleCalls) -> Iterator[None]:
        self.recording, self.modules = recording, modules
        self.storages = Storages(self._place)
        self.saved = SavedTensors(self.storages, self._drop)
        self.costs = OpCosts()
        self.step = FakeStep(self)
        self.kept = LeftAsItWas(self.step.faked, self._note_state)
        swap = Patch(torch.utils, "swap_tensors")
        swap.install(self._swapping(swap))
        try:
            with self.kept, self.saved.hooks, self.step.running():
                yield
        finally:
            swap.remove()

    def _swapping(self, swap: Patch) -> Callable[[Tensor, Tensor], None]:
        """Returns what swaps tensors as module.to() does: torch refuses those that a weak reference knows."""

        def swap_tensors(first: Tensor, second: Tensor) -> None:
            for tensor in (first, second):
                self.recording.registry.forget(tensor)
                self.step.values.forget(tensor)
            self.step.forget_converted()
            swap.before(first, second)

        return swap_tensors

    def around(self, func: Any, run: Callable[..., Any]) -> Callable[..., Any]:
        # Most calls of a step on shapes are this question, which the modes below would only hand on.
        return _device_of if func is DEVICE else run

    def _place(self) -> int:
        return len(self.recording.ops) // OP_FIELDS

    def _drop(self, slot: int) -> None:
        self.recording.ops[slot * OP_FIELDS : (slot + 1) * OP_FIELDS] = NOTHING_YET

    def is_in_optimizer(self) -> bool:
        return self.recording.code == OPTIMIZER_CODE

    def where(self) -> str:
        call = self.recording.main.module_call
        if call < 0:
            return ""
        called = self.modules.called[self.recording.module_calls[call][0]]
        return f", in {called.path or self.modules.roots.labels()[called.root]}"

    def real(self, real: Tensor, fake: FakeTensor) -> None:
        self.kept.note(real)
        kind = PARAMETER if isinstance(real, Parameter) else INPUT
        held = self.storages.made(real, kind, BEFORE)
        if held is not None:
            self.storages.stands_for(fake, held)
        if isinstance(gradient := real.grad if real.is_leaf else None, FakeTensor):
            self.storages.made(gradient, GRADIENT, BEFORE)

    def before(self, func: OpOverload, args: Any) -> None:
        self.storages.settle_merge()
        self.saved.before(func, args)
        # A mode makes autograd sum gradients into a new tensor; without one it adds to the first, where nobody else
        # holds that.
        if func is ADD and _is_of_engine():
            self.storages.merge(args[0])

    def after(self, func: OpOverload, args: Any, kwargs: Any, out: Any) -> None:
        self.saved.after(func, args, out)
        self._note_made(out)
        self.costs.note(self._place(), func, args, kwargs, out)

    def _note_made(self, out: Any) -> None:
        if isinstance(out, Tensor):
            held = self.storages.made(out)
            if held is not None and held.kind == TEMPORARY and type(current_node()) is ACCUMULATE:
                held.kind = GRADIENT
        elif isinstance(out, list | tuple):
            for item in out:
                self._note_made(item)

    def _note_state(self, optimizer: Any) -> None:
        """Notes what a step of an optimizer has left in its state."""
        for state in optimizer.state.values():
            for value in state.values() if isinstance(state, dict) else ():
                if isinstance(value, Tensor) and (held := self.storages.of(value)) is not None:
                    held.kind = STATE

    def frames(self, trace: Trace, ops: pd.DataFrame, op_ids: np.ndarray) -> tuple[Frames, Meta]:
        self._note_models()
        costs = costs_frame(self.costs.rows, ops, op_ids)
        frames = {
            "costs": costs if self.device is None else _timed(costs, self.device),
            **memory_frames(self.storages, ops, op_ids),
            "saved": saved_frame(self.saved.saved, ops, op_ids),
        }
        assumed = self.step.assumed
        notes = [f"{assumed} values that optimizers read were taken as 1."] if assumed else []
        meta = {} if self.device is None else {"cost_device": self.device.peaks()}
        return frames, {"unknown_flops": self.costs.unknown(), "notes": notes, **meta}

    def completed(self, frames: Frames, meta: Meta) -> tuple[Frames, Meta]:
        return {**frames, "module_costs": module_costs(frames["modules"], frames["costs"], frames["saved"])}, meta

    def _note_models(self) -> None:
        """Tells parameters from buffers, and adds those that no op took."""
        for root in self.modules.roots.roots:
            model = root.module()
            for kind, tensors in ((PARAMETER, model.parameters()), (BUFFER, model.buffers())) if model else ():
                for tensor in tensors:
                    held = self.storages.made(tensor, kind, BEFORE)
                    if held is not None:
                        held.kind = kind

    def forget(self) -> None:
        self.storages.forget()
        del self.recording, self.modules, self.storages, self.saved, self.costs, self.kept, self.step


def _timed(costs: pd.DataFrame, device: Device) -> pd.DataFrame:
    return with_times(costs, device, products_in_tf32=torch.get_float32_matmul_precision() != "highest")


def _device_of(tensor: Any) -> torch.device:
    """Returns the device that a tensor is said to be on; it never raises, which would end the process here."""
    device: torch.device = getattr(tensor, "fake_device", None) or tensor.device
    return device


def _is_of_engine() -> bool:
    """Returns whether autograd itself runs the op that is running, between its nodes or to add to a gradient."""
    node = current_node()
    return type(node) is ACCUMULATE or (node is None and torch._C._current_graph_task_id() != -1)
