"""Tells of the steps of optimizers: those that are done, and those that a GradScaler skips."""

from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from nbkit.capture.raw.patching import Patch


class OptimizerEvents:
    """Calls functions where an optimizer of the process steps, while installed.

    `on_step(optimizer, has_closure)` is called when its gradients are there: before the step, and after one that was
    given a closure, which computes them. `on_skip(optimizer, scale)` is called instead where a GradScaler skips it.
    `on_scaler(scaler, optimizer)` is called before a GradScaler is to step. All this is done within `isolate`.
    """

    def __init__(
        self,
        isolate: Callable[[Callable[[], object]], object],
        on_step: Callable[[Any, bool], object],
        on_skip: Callable[[Any, Any], object],
        on_scaler: Callable[[Any, Any], object] | None = None,
    ) -> None:
        self.isolate, self.on_step, self.on_skip, self.on_scaler = isolate, on_step, on_skip, on_scaler
        self.begun = 0
        self.handles: list[Any] = []
        self.patch = Patch(torch.amp.GradScaler, "step")

    def install(self) -> None:
        self.handles = [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]
        patch, begun, skipped, scaling = self.patch, self._begun, self._skipped, self._scaling

        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            before = begun()
            scaling(scaler, optimizer)
            result = patch.before(scaler, optimizer, *args, **kwargs)
            if begun() == before and scaler.is_enabled():
                skipped(optimizer, scaler._scale)
            return result

        patch.install(step)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()
        self.handles = []
        self.patch.remove()

    def _begun(self) -> int:
        return self.begun

    def _scaling(self, scaler: Any, optimizer: Any) -> None:
        on_scaler = self.on_scaler
        if on_scaler is not None and scaler.is_enabled():
            self.isolate(lambda: on_scaler(scaler, optimizer))

    def _skipped(self, optimizer: Any, scale: Any) -> None:
        self.isolate(lambda: self.on_skip(optimizer, scale))

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self.begun += 1
        if not has_closure(args, kwargs):
            self.isolate(lambda: self._met(optimizer, False))

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if has_closure(args, kwargs):
            self.isolate(lambda: self._met(optimizer, True))

    def _met(self, optimizer: Any, has_closure: bool) -> None:
        found = getattr(optimizer, "found_inf", None)  # set by a GradScaler for optimizers that skip by themselves
        if found is not None and float(found):
            self.on_skip(optimizer, getattr(optimizer, "grad_scale", None))
        else:
            self.on_step(optimizer, has_closure)


def has_closure(args: Any, kwargs: Any) -> bool:
    """Returns whether a step was given a closure; `args` begin with the optimizer."""
    return (kwargs.get("closure") or (args[1] if len(args) > 1 else None)) is not None
