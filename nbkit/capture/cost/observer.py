"""Adds to a recording what its step costs: FLOPs and bytes of each op, memory over time, tensors saved for backward."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet, ref

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd.function import BackwardCFunction
from torch.nn import Parameter
from torch.nn.parameter import is_lazy

from nbkit.capture.cost.engine_sums import EngineSums
from nbkit.capture.cost.fake.absent_devices import stand_in
from nbkit.capture.cost.fake.asked_values import Values
from nbkit.capture.cost.fake.fake_mode import DEVICE
from nbkit.capture.cost.fake.fake_step import FakeStep
from nbkit.capture.cost.fake.left_as_it_was import LeftAsItWas
from nbkit.capture.cost.fake.refusals import refuse_ranks
from nbkit.capture.cost.frames import costs_frame, memory_frames, saved_frame
from nbkit.capture.cost.module_rows import module_costs
from nbkit.capture.cost.op_costs import OpCosts
from nbkit.capture.cost.saved_tensors import SavedTensors
from nbkit.capture.cost.storages import BEFORE, BUFFER, GRADIENT, INPUT, PARAMETER, STATE, TEMPORARY, Storage, Storages
from nbkit.capture.raw.patching import Patch
from nbkit.capture.raw.recording import ACCUMULATE, OPTIMIZER_CODE, Recording, current_node
from nbkit.capture.recorder.observer import Frames, Meta, Observer
from nbkit.capture.step.module_calls import ModuleCalls
from nbkit.devices.device import Device
from nbkit.devices.roofline import with_times
from nbkit.trace.trace import Trace

MOVED = (
    "The step moves a model that shares weights, or whose optimizer was made before: its parameters count as new ones, "
    "shared ones twice, and that optimizer updates none. Make the model inside the step, or move it before."
)
ADD = torch.ops.aten.add.Tensor
aten = torch.ops.aten
# In a backward formula these write into zeros made for them; on fake tensors torch takes the form that makes another.
INTO_ZEROS = frozenset(
    id(op)  # the hash of an op is Python code
    for op in (
        aten.index_put.default,
        aten.index_add.default,
        aten.scatter.src,
        aten.scatter_add.default,
        aten.masked_scatter.default,
    )
)


class Conditions:
    """Changes what a step runs under; each hook here does nothing."""

    def around(self, observer: "CostObserver") -> AbstractContextManager[object]:
        """Returns what is entered before the step runs on shapes, and left after it."""
        return nullcontext()

    def inside(self, observer: "CostObserver") -> AbstractContextManager[object]:
        """Returns what is entered where the step runs on shapes, before any of it is counted."""
        return nullcontext()

    def stand_in(self, real: Tensor) -> FakeTensor | None:
        """Returns the tensor without values that the step sees instead of a real one; None where it stays as it is."""
        return None


@dataclass(frozen=True)
class Met:
    """Describes a real tensor that a step took; `storage.kind` says what it is, once the step is over."""

    tensor: Any  # a weak reference
    shape: tuple[int, ...]
    storage: Storage


class CostObserver(Observer):
    """Runs the step of a recording on shapes, counts, and predicts times on a device if it has one.

    What it met stays known afterwards: real tensors, optimizers that stepped, and root models, by weak references.
    """

    def __init__(
        self, conditions: Conditions | None = None, device: Device | None = None, values: Values = "auto"
    ) -> None:
        self.conditions, self.device, self.way = conditions or Conditions(), device, values
        self.met: list[Met] = []
        self.optimizers: WeakSet[Any] = WeakSet()
        self.models: dict[str, Any] = {}  # by their label in the frames
        self.unmet: list[FakeTensor] = []
        self.moved: list[Any] = []  # weak references to models with parameters of the step's own
        self.recomputed: set[int] = set()  # slots of ops, and at last op_ids, that a checkpoint runs again

    step_type = FakeStep

    @contextmanager
    def below(self, recording: Recording, modules: ModuleCalls) -> Iterator[None]:
        self.recording, self.modules = recording, modules
        recording.registry.plain.add(FakeTensor)
        self.storages = Storages(self._place)
        self.saved = SavedTensors(self.storages, self._drop, self._meet)
        self.costs = OpCosts()
        self.step = self.step_type(self, self.conditions.stand_in, self.storages.number_at, self.way)
        self.storages.on_gone = self.step.asked.gone
        self.sums = EngineSums()
        self.kept = LeftAsItWas(self.step.faked, self._note_state)
        modules.roots.on_new = refuse_ranks
        swap = Patch(torch.utils, "swap_tensors")
        swap.install(self._swapping(swap))
        try:
            with (
                self.conditions.around(self), self.kept, self.saved.hooked(), self.sums, self.step.running(),
                self.conditions.inside(self),
            ):  # fmt: skip
                yield
                self._note_moved()
        finally:
            swap.remove()
            modules.roots.on_new = None

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
        return _device_of if func is DEVICE else self.step.without_dispatch(func, run)

    def _place(self) -> int:
        return self.recording.ops.row_count

    def _drop(self, slot: int) -> None:
        self.recording.ops.clear_row(slot)

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
        is_other = fake.shape != real.shape or fake.dtype != real.dtype
        seen, hidden = (fake, real) if is_other else (real, fake)
        held = self.storages.made(seen, kind, BEFORE)
        if held is not None:
            self.storages.stands_for(hidden, held)
            self.met.append(Met(ref(real), tuple(real.shape), held))
        if isinstance(gradient := seen.grad if seen.is_leaf else None, FakeTensor):
            self.storages.made(gradient, GRADIENT, BEFORE)

    def _meet(self, tensor: Tensor) -> Storage | None:
        """Notes a tensor that is saved before an op took it: one from outside, of which autograd is told first."""
        if isinstance(tensor, FakeTensor):
            self.step.note_stand_in(tensor)
            return self.storages.made(tensor)
        return self.storages.made(tensor, PARAMETER if isinstance(tensor, Parameter) else INPUT, BEFORE)

    def before(self, func: OpOverload, args: Any) -> None:
        self.storages.settle_merge()
        self.saved.before(func, args, self.step.real.values())
        # A mode makes autograd sum gradients into a new tensor; without one it adds to the first, where nobody else
        # holds that.
        is_sum = func is ADD and self._is_of_engine() and not args[0]._is_view()  # a view holds its base, too
        if is_sum or (id(func) in INTO_ZEROS and _is_of_formula()):
            self.storages.merge(args[0])

    def unpacks(self, func: OpOverload, args: Any) -> bool:
        if id(args[0]) != self.saved.unpacked:
            return False
        self.storages.settle_merge()
        self.saved.before(func, args, ())
        self.saved.after(func, args, None)
        return True

    def _is_of_engine(self) -> bool:
        """Returns whether autograd itself runs the op that is running, between its nodes or to add to a gradient."""
        return self.sums.is_running() or type(current_node()) is ACCUMULATE

    def after(self, func: OpOverload, args: Any, kwargs: Any, out: Any) -> int:
        self.saved.after(func, args, out)
        self._note_made(out)
        # Autograd computes gradients with its recording off, unless these are to have gradients themselves.
        place = self._place()
        if torch.is_grad_enabled() and torch._C._current_graph_task_id() != -1:
            self.recomputed.add(place)
        into_zeros = id(func) in INTO_ZEROS and _is_of_formula()
        self.costs.note(place, func, args, kwargs, out, is_in_place=into_zeros, alike=self.step.alike)
        return self.costs.costs[-1].flops or 0

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
        self.optimizers.add(optimizer)
        for state in optimizer.state.values():
            for value in state.values() if isinstance(state, dict) else ():
                # What no op took was there before.
                if isinstance(value, Tensor) and (held := self.storages.made(value, STATE, BEFORE)) is not None:
                    held.kind = STATE

    def frames(self, trace: Trace, ops: pd.DataFrame, op_ids: np.ndarray) -> tuple[Frames, Meta]:
        self._note_models()
        self.recomputed = {int(op_ids[slot]) for slot in self.recomputed if slot < len(op_ids)}
        costs = costs_frame(self.costs, ops, op_ids)
        frames = {
            "costs": costs if self.device is None else _timed(costs, self.device),
            **memory_frames(self.storages, ops, op_ids),
            "saved": saved_frame(self.saved.saved, ops, op_ids),
        }
        meta = {} if self.device is None else {"cost_device": self.device.peaks()}
        meta |= {"computed_values": self.step.asking.computed, "bounded_values": self.step.asking.bounds}
        notes = [*self.step.notes(), *self.saved.notes, *([MOVED] if self._is_lost_in_move() else [])]
        return frames, {"unknown_flops": self.costs.unknown(), "notes": notes, **meta}

    def completed(self, frames: Frames, meta: Meta) -> tuple[Frames, Meta]:
        return {**frames, "module_costs": module_costs(frames["modules"], frames["costs"], frames["saved"])}, meta

    def _note_moved(self) -> None:
        """Tells what stands for parameters and buffers of a real model that the step moved; later they are back."""
        for root in self.modules.roots.roots:
            model = root.module()
            if model is not None and any(isinstance(each, FakeTensor) for each in model.parameters()):
                self.moved.append(root.module)
                for kind, tensor in _state_of(model):
                    if isinstance(tensor, FakeTensor) and (held := self.storages.of(tensor)) is not None:
                        held.kind = kind

    def _is_lost_in_move(self) -> bool:
        """Returns whether a real model was moved that shares weights, or whose parameters an optimizer knew before."""
        models = [model for moved in self.moved if (model := moved()) is not None]
        every = [each for model in models for _, each in model.named_parameters(remove_duplicate=False)]
        real = [id(each) for each in every if not isinstance(each, FakeTensor)]  # they are back: those of a step stay
        known = {id(each) for held in self.optimizers for group in held.param_groups for each in group["params"]}
        return len(real) > len({*real}) or not known.isdisjoint(real)

    def _note_models(self) -> None:
        """Tells parameters from buffers, and adds those that no op took."""
        roots = self.modules.roots
        self.models = {label: root.module for label, root in zip(roots.labels(), roots.roots, strict=True)}
        for root in roots.roots:
            model = root.module()
            for kind, tensor in () if model is None else _state_of(model):
                if is_lazy(tensor):
                    continue
                held = self.storages.made(self._as_seen(tensor), kind, BEFORE)
                if held is not None:
                    held.kind = kind

    def _as_seen(self, tensor: Tensor) -> Tensor:
        """Returns the tensor that the step would see, if an op took this one; it lives until the frames are built."""
        stand_in = None if self.storages.of(tensor) is not None else self.conditions.stand_in(tensor)
        if stand_in is None:
            return tensor
        self.unmet.append(stand_in)
        return stand_in

    def forget(self) -> None:
        self.storages.forget()
        self.unmet.clear()
        del self.recording, self.modules, self.storages, self.saved, self.costs, self.kept, self.sums, self.step


def _timed(costs: pd.DataFrame, device: Device) -> pd.DataFrame:
    return with_times(costs, device, products_in_tf32=torch.get_float32_matmul_precision() != "highest")


def _device_of(tensor: Any) -> torch.device:
    """Returns the device that torch in C++ is told of; it never raises, which would end the process here."""
    return stand_in(getattr(tensor, "fake_device", None) or tensor.device)


def _state_of(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for kind, tensors in ((PARAMETER, model.parameters()), (BUFFER, model.buffers())):
        for tensor in tensors:
            yield kind, tensor


def _is_of_formula() -> bool:
    """Returns whether torch's own formula of a backward node runs the op that is running."""
    node = current_node()
    return node is not None and not isinstance(node, BackwardCFunction)
