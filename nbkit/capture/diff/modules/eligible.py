"""Tells which calls of modules are compared, and why others are not."""

import random
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch._subclasses import FakeTensor
from torch.nn.modules import module as torch_module
from torch.nn.parameter import is_lazy

from nbkit.capture.diff.modules.copies import held_tensors, tensors_of
from nbkit.capture.frames.selection import Selection
from nbkit.patterns import path_matcher

# They compute with the parameters of modules in them that they never call.
WHOLE = (nn.MultiheadAttention,)
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
GLOBAL_HOOKS = tuple(f"_global{name}" for name in HOOKS)


class ChosenModules:
    """Tells whether a module is meant: by its own path where patterns are given, else if no module is in it."""

    def __init__(self, selection: Selection) -> None:
        self.matches = None if selection.modules is None else path_matcher(selection.modules)
        self.may_be = Selection(exclude_modules=selection.exclude_modules).module_matcher()

    def has(self, path: str, module: nn.Module) -> bool:
        """Returns whether the module at a path is compared."""
        if self.may_be is not None and not self.may_be(path):
            return False
        if self.matches is not None:
            return self.matches(path)
        return isinstance(module, WHOLE) or not any(True for _ in module.children())


def why_not(module: nn.Module, args: Any, kwargs: Any) -> str | None:
    """Returns why a call of a module is not compared; None if it is."""
    if any(getattr(torch_module, name) for name in GLOBAL_HOOKS):
        return "modules under hooks for all modules, which may change what they compute"
    for one in module.modules():
        if isinstance(one, torch.jit.ScriptModule):
            return "scripted modules"
        if hasattr(one, "_orig_mod") or getattr(one, "_compiled_call_impl", None) is not None:
            return "compiled modules"
        if any(one.__dict__.get(name) for name in HOOKS):
            return "modules with hooks, which may change what they compute"
        if "forward" in one.__dict__:
            return "modules whose forward was replaced"
    return _of_tensors([*tensors_of((args, kwargs)), *held_tensors(module)])


def _of_tensors(tensors: list[Tensor]) -> str | None:
    for tensor in tensors:
        if is_lazy(tensor):
            return "modules whose parameters are not made yet"
        if tensor.is_meta or isinstance(tensor, FakeTensor):
            return "tensors without values (meta, fake)"
        if tensor.is_nested:
            return "nested tensors, which have no one shape"
    return None


class Draws:
    """Tells whether random numbers have been drawn since it was made, from the generators of CPU, numpy and Python."""

    def __init__(self) -> None:
        self.before = self._states()

    def any(self) -> bool:
        """Returns whether one of them has moved."""
        torch_state, numpy_state, python_state = self._states()
        before = self.before
        return not (torch.equal(torch_state, before[0]) and numpy_state == before[1] and python_state == before[2])

    def _states(self) -> tuple[Tensor, Any, Any]:
        kind, keys, *rest = np.random.get_state(legacy=True)
        numpy_state = kind, np.asarray(keys).tobytes(), *rest
        return torch.default_generator.get_state(), numpy_state, random.getstate()
