"""Follows the optimizers of a recording: what gradients each of their steps met, and which a GradScaler skipped."""

import gc
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple
from weakref import ref

import torch
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from nbkit.capture.audit.measures import measured_gradient
from nbkit.capture.audit.models import AuditedModel, Held, Update, storage_of
from nbkit.capture.raw.patching import Patch
from nbkit.capture.raw.recording import Recording
from nbkit.capture.replay.isolated import timed_isolated


class Skip(NamedTuple):
    """Describes a step that a GradScaler skipped."""

    step: int  # as in ops.step
    optimizer: str
    scale: float | None


class OptimizerAudit:
    """Looks at the gradients of all audited models where an optimizer steps, while installed."""

    def __init__(self, recording: Recording, models: list[AuditedModel], given: Sequence[Any]) -> None:
        self.recording = recording
        self.models = models
        self.known: list[Any] = [ref(optimizer) for optimizer in given]
        self.skips: list[Skip] = []
        self.steps = 0  # done ones
        self.idle_steps = 0  # those of which no parameter had a gradient
        self.begun = 0
        self.handles: list[Any] = []
        self.patch = Patch(torch.amp.GradScaler, "step")

    def install(self) -> None:
        self.handles = [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]
        patch, begun = self.patch, self._begun

        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            before = begun()
            result = patch.before(scaler, optimizer, *args, **kwargs)
            if begun() == before and scaler.is_enabled():
                self._isolated(lambda: self._skipped(optimizer, scaler._scale))
            return result

        patch.install(step)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()
        self.handles = []
        self.patch.remove()

    def _begun(self) -> int:
        return self.begun

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self.begun += 1
        if not has_closure(args, kwargs):
            self._isolated(lambda: self._met(optimizer, False))

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        # A closure computes the gradients within the step.
        if has_closure(args, kwargs):
            self._isolated(lambda: self._met(optimizer, True))

    def _isolated(self, work: Callable[[], object]) -> None:
        timed_isolated(self.recording, work, self._trouble)

    def _trouble(self, error: Exception) -> None:
        self.recording.skip(f"gradients not looked at ({type(error).__name__})")

    def _met(self, optimizer: Any, has_closure: bool) -> None:
        found = getattr(optimizer, "found_inf", None)  # set by a GradScaler for optimizers that skip by themselves
        if found is not None and float(found):
            self._skipped(optimizer, getattr(optimizer, "grad_scale", None))
        else:
            self.steps += 1
            self._note(optimizer, True, has_closure)

    def _skipped(self, optimizer: Any, scale: Any) -> None:
        number = None if scale is None else float(scale)
        self.skips.append(Skip(self.recording.step, type(optimizer).__name__, number))
        self._note(optimizer, False, False)

    def _note(self, optimizer: Any, is_done: bool, has_closure: bool) -> None:
        """Notes what this step met: the gradients that it uses, and those of others that were not seen yet."""
        if not any(known() is optimizer for known in self.known):
            self.known.append(ref(optimizer))
        groups = groups_of(optimizer)
        used = [one.grad for group in getattr(optimizer, "param_groups", []) for one in group["params"]]
        self.idle_steps += is_done and all(gradient is None for gradient in used)
        for model, held in self.parameters():
            followed, gradient = model.of(held.name), held.tensor.grad
            group = groups.get(id(held.tensor))
            if group is not None:
                storage = storage_of(gradient, self.recording.registry)
                followed.note_step(gradient, Update(self.recording.step, storage, is_done, has_closure))
                followed.note_rates(group.get("lr"), group.get("weight_decay"))
                followed.in_optimizer = True
            elif gradient is not None and followed.other is None:
                followed.other = measured_gradient(gradient)

    def parameters(self) -> Iterator[tuple[AuditedModel, Held]]:
        """Yields each parameter once, by its first name in the first model that has it."""
        seen: set[int] = set()
        for model in self.models:
            for held in model.held():
                if held.kind == "parameter" and id(held.tensor) not in seen and held.tensor.is_leaf:
                    seen.add(id(held.tensor))
                    yield model, held

    def note_idle(self) -> None:
        """Notes which parameters are held by optimizers that did not step: of those given, else of all there are."""
        if not self.known:
            return
        rest = [one for one in self.parameters() if not one[0].of(one[1].name).in_optimizer]
        optimizers = [optimizer for known in self.known if (optimizer := known()) is not None]
        if rest:  # to look for others takes a while
            optimizers += [held for held in gc.get_objects() if issubclass(type(held), Optimizer)]
        for optimizer in optimizers:
            groups = groups_of(optimizer)
            for model, held in rest:
                if (group := groups.get(id(held.tensor))) is not None:
                    followed = model.of(held.name)
                    followed.in_optimizer = True
                    followed.note_rates(group.get("lr"), group.get("weight_decay"))


def groups_of(optimizer: Any) -> dict[int, dict[str, Any]]:
    """Returns the group of each parameter of an optimizer, by its id."""
    groups = getattr(optimizer, "param_groups", [])
    return {id(parameter): group for group in groups for parameter in group["params"]}


def has_closure(args: Any, kwargs: Any) -> bool:
    """Returns whether a step was given a closure; `args` begin with the optimizer."""
    return (kwargs.get("closure") or (args[1] if len(args) > 1 else None)) is not None
