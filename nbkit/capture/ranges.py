"""Ranges on the profiler's timeline: the recorded code itself, the forward calls of modules, backward passes."""

from collections.abc import Callable
from itertools import count
from sys import _getframe
from threading import get_ident
from typing import Any

import torch
from torch import nn
from torch._C import DisableTorchFunction
from torch._C._profiler import _RecordFunctionFast

from nbkit.capture.api_ranges import ApiRanges
from nbkit.capture.called_modules import CalledModules
from nbkit.capture.dispatch import current_node
from nbkit.capture.patching import Patch

MODULE_MARK = "nbkit module call "
ROOT_MARK = "nbkit step"


class Place:
    """Where one thread stands: how many modules deep, and in which root model."""

    def __init__(self) -> None:
        self.depth = 0
        self.root = -1


class Ranges:
    """Marks the timeline while installed. A module call's range is named by its index in `module_calls`."""

    def __init__(self, api: ApiRanges) -> None:
        self.api = api
        self.modules = CalledModules()
        # By number: index into modules.called, how often that module had been called before, and its class.
        self.module_calls: dict[int, tuple[int, int, str]] = {}
        self.main = get_ident()
        self.unrecorded = 0  # calls of modules in threads that the profiler does not see
        self.places: dict[int, Place] = {}
        self.module_patch = Patch(nn.Module, "__call__")
        self.backward_patches = [Patch(torch.autograd, name) for name in ("backward", "grad")]

    def install(self) -> None:
        self.module_patch.install(self._module_call())
        for patch in self.backward_patches:
            patch.install(_in_range(patch, f"torch.autograd.{patch.name}"))

    def remove(self) -> None:
        for patch in (self.module_patch, *self.backward_patches):
            patch.remove()

    def _module_call(self) -> Callable[..., Any]:
        """What stands for nn.Module.__call__; a closure, since it runs before every module."""
        patch, api, places = self.module_patch, self.api, self.places
        by_place, module_calls, find = self.modules.by_place, self.module_calls, self.modules.find
        main, numbers = self.main, count(len(module_calls))  # a count, since threads of a backward pass share it

        def __call__(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            ident = get_ident()
            if ident != main and current_node() is None:
                self.unrecorded += 1  # a thread of the user's own
                return patch.before(module, *args, **kwargs)
            place = places.get(ident)
            if place is None:
                place = places[ident] = Place()
            outer_root = place.root
            called = by_place.get((id(module), outer_root)) if place.depth else None
            if called is None or called.module() is not module:
                with DisableTorchFunction():  # its questions about parameters are not the step's
                    called = find(module, place, not place.depth, _getframe(1))
            number = next(numbers)
            module_calls[number] = (called.number, called.calls, type(module).__name__)
            called.calls += 1
            place.depth += 1
            may_fuse = called.may_fuse and not module.training
            if may_fuse:
                api.pause()
            try:
                with _RecordFunctionFast(f"{MODULE_MARK}{number}"):
                    return patch.before(module, *args, **kwargs)
            finally:
                if may_fuse:
                    api.resume()
                place.depth -= 1
                place.root = outer_root

        return __call__


def _in_range(patch: Patch, name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with _RecordFunctionFast(name):
            return patch.before(*args, **kwargs)

    return call
