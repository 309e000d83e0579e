"""Gives a step on shapes gradients without values, and puts back what was there: what models and optimizers hold."""

import gc
from collections.abc import Callable
from typing import Any
from weakref import ref

from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.optim.optimizer import register_optimizer_step_post_hook

from nbkit.capture.watch.state import State, holders, is_frozen
from nbkit.compat.torch_versions import set_version


class LeftAsItWas:
    """Puts gradients of real tensors, and what models, optimizers and scalers hold, aside and back at exit.

    `faked` makes a tensor without values of a real one. `on_state` is told of each optimizer after a step.
    """

    def __init__(self, faked: Callable[[Tensor], Tensor], on_state: Callable[[Any], None]) -> None:
        self.faked, self.on_state = faked, on_state
        self.gradients: list[tuple[Any, Tensor | None]] = []
        self.versions: list[tuple[Any, int]] = []
        self.noted: set[int] = set()
        self.before: State | None = None
        self.handles: list[Any] = []
        self.is_to_thaw = False

    def note(self, real: Tensor) -> None:
        """Notes a real tensor before the first op takes it."""
        if not real.is_inference():
            self.versions.append((ref(real), real._version))
        self.note_gradient(real)

    def note_gradient(self, real: Tensor) -> None:
        """Puts a tensor without values in place of the gradient of a real tensor."""
        # A model that an earlier step on shapes made has no real tensors.
        if real.is_leaf and real.requires_grad and id(real) not in self.noted and not isinstance(real, FakeTensor):
            self.noted.add(id(real))
            self.gradients.append((ref(real), gradient := real.grad))
            if gradient is not None:
                real.grad = self.faked(gradient)

    def __enter__(self) -> None:
        objects = gc.get_objects()
        found, self.is_to_thaw = holders(objects), not is_frozen(objects)
        del objects
        # Tensors keep their values by themselves; which tensors a model, an optimizer or a scaler holds is put back.
        self.before = State(found, [], 0, can_keep=lambda tensor: False)
        # A step may drop a gradient before an op takes its tensor.
        for model in found:
            for parameter in model.parameters() if isinstance(model, nn.Module) else ():
                if parameter.grad is not None:
                    self.note_gradient(parameter)
        # A collection would look through all that there is, which takes as long as a large part of the step: what was
        # there before stays out of it.
        if self.is_to_thaw:
            gc.freeze()
        self.handles = [
            register_optimizer_step_post_hook(lambda optimizer, args, kwargs: self.on_state(optimizer)),
        ]

    def __exit__(self, *error: object) -> None:
        if self.is_to_thaw:
            gc.unfreeze()
            self.is_to_thaw = False
        for handle in self.handles:
            handle.remove()
        self.handles.clear()
        for tensor, gradient in self.gradients:
            if (real := tensor()) is not None:
                real.grad = gradient
        for tensor, version in self.versions:
            # An op in place counts one more, though it has written to the tensor without values.
            if (real := tensor()) is not None and real._version != version:
                set_version(real, version)
        if self.before is not None:
            self.before.restore()
            self.before = None
        self.gradients.clear()
