"""Finds root models: which model a module belongs to, and its named_modules() path in it."""

import gc
import inspect
from collections.abc import Callable
from types import FrameType
from typing import Any
from weakref import ref

from torch import nn

from nbkit.capture.raw.source import is_user_frame
from nbkit.capture.step.module_sizes import ModuleSize, module_sizes
from nbkit.compat.torch_versions import original_of


class Root:
    """Holds one root model: the class name of what was written, and path and size of every module it holds."""

    def __init__(self, module: nn.Module) -> None:
        self.module: Any = ref(module)
        # What torch.compile made has a class of torch's own around the model.
        original = original_of(module)
        self.type = type(module if original is None else original).__name__
        self.paths: dict[int, str] = {}
        self.scans = 0
        self.sizes: dict[str, ModuleSize] = {}
        self.scan(module)

    def scan(self, module: nn.Module) -> None:
        """Notes the paths of all modules it holds now."""
        self.scans += 1
        paths = {id(child): path for path, child in module.named_modules()}
        self.paths |= paths
        self.sizes |= noted_sizes(module, paths)

    def path(self, module: nn.Module) -> str | None:
        """Returns the named_modules() path of a module in this root; None if it is not part of it."""
        root = self.module()
        if root is None:
            return None
        if self._stands(root, module):
            return self.paths[id(module)]
        if not _holds(root, module):  # asked first, since a scan counts every parameter again
            return None
        self.scan(root)
        return self.paths[id(module)] if self._stands(root, module) else None

    def _stands(self, root: nn.Module, module: nn.Module) -> bool:
        """Returns whether the noted path is right: modules move, and the id of one that is gone may come back."""
        path = self.paths.get(id(module))
        return path is not None and _at(root, path) is module


def noted_sizes(root: nn.Module, paths: dict[int, str]) -> dict[str, ModuleSize]:
    """Returns the sizes an earlier recording noted if the model still holds the same modules; else measures them.

    Measuring takes as long as some hundred ops, inside the step; a model that lives on is measured again after it.
    """
    key = id(root)
    noted = _noted.get(key)
    if noted is None or noted[0]() is not root or noted[1] != paths:
        noted = _noted[key] = (ref(root, lambda _: _noted.pop(key, None)), paths, module_sizes(root))
    return noted[2]


# By id of the root model: its reference, the paths of its modules by id, and their sizes.
_noted: dict[int, tuple[Any, dict[int, str], dict[str, ModuleSize]]] = {}


class RootModules:
    """Keeps the root models of a recording, in the order in which they first ran.

    `on_new` is called with each of them before its first forward call.
    """

    def __init__(self) -> None:
        self.roots: list[Root] = []
        self.on_new: Callable[[nn.Module], object] | None = None

    def find(self, module: nn.Module, frame: FrameType | None) -> int:
        """Returns the number of the root that an outermost called module belongs to; adds a root that is new.

        A module called as an attribute (`model.encoder(x)`, or inside a method such as `model.generate()`) belongs to
        the model that holds it in the variables of the calling frames.
        """
        for number, root in enumerate(self.roots):
            if root.path(module) is not None:
                return number
        holder = outermost_holder(module, frame)
        self.roots.append(Root(holder))
        if self.on_new is not None:
            self.on_new(holder)
        return len(self.roots) - 1

    def labels(self) -> list[str]:
        """Returns the class name of each root, numbered from the second of the same class on: Net, Net#2."""
        seen: dict[str, int] = {}
        labels = []
        for root in self.roots:
            seen[root.type] = seen.get(root.type, 0) + 1
            labels.append(root.type if seen[root.type] == 1 else f"{root.type}#{seen[root.type]}")
        return labels


def outermost_holder(module: nn.Module, frame: FrameType | None) -> nn.Module:
    """Returns the model that `module` was reached through, judged by variables of the user's frames from `frame` up."""
    current = module
    while frame is not None:
        if is_user_frame(frame):
            variables = module_variables(frame)
            receiver = frame.f_code.co_varnames[:1] if frame.f_code.co_argcount else ()
            if any(value is current for name, value in variables if name not in receiver):
                return current
            holders = [value for _, value in variables if value is not current and _holds(value, current)]
            if holders:
                # The widest of them: a variable may also name a part in between.
                current = max(holders, key=lambda holder: sum(1 for _ in holder.modules()))
                if any(value is current for name, value in variables if name not in receiver):
                    return current
        frame = frame.f_back
    return current


def module_variables(frame: FrameType) -> list[tuple[str, nn.Module]]:
    """Returns the variables of a frame that are modules.

    Before Python 3.13 reading f_locals of a function leaves a dict on the frame that would keep every local tensor
    alive until it returns: one that was not there before is emptied again.
    """
    is_function = bool(frame.f_code.co_flags & inspect.CO_OPTIMIZED)
    before = {id(item) for item in gc.get_referents(frame) if type(item) is dict} if is_function else set()
    variables = frame.f_locals
    modules = [(name, value) for name, value in list(variables.items()) if isinstance(value, nn.Module)]
    if is_function and type(variables) is dict and id(variables) not in before:
        variables.clear()
    return modules


def _holds(holder: nn.Module, module: nn.Module) -> bool:
    return any(child is module for child in holder.modules())


def _at(root: nn.Module, path: str) -> nn.Module | None:
    module: Any = root
    for name in filter(None, path.split(".")):
        module = module._modules.get(name)
        if module is None:
            return None
    return module if isinstance(module, nn.Module) else None
