"""Puts back what running a model changes: memory written to, gradients, attributes of modules, random numbers."""

import sys
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from torch import Tensor, nn

from nbkit.capture.executions.observer import ExecutionObserver
from nbkit.capture.watch.reached import GENERATORS
from nbkit.capture.watch.state import State, random_state, set_random_state


class LeftAsItWas:
    """Keeps containers of arguments and models, and gradients of what is read, while entered; puts them back at exit.

    The memory of tensors is the observer's: it copies what an op is about to write to. Entered again, it keeps all that
    the first run has met.
    """

    def __init__(self, observer: ExecutionObserver, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self.observer = observer
        observer.on_model = self.keep_model
        observer.on_leaf = self.keep_gradient
        self.gradients: list[tuple[Tensor, Tensor | None]] = []
        self.states: list[State] = []
        self.models: list[nn.Module] = []
        self.leaves: dict[int, Tensor] = {}
        self.kept: set[int] = set()
        self.arguments = SimpleNamespace(args=list(args), kwargs=dict(kwargs))

    def keep_model(self, model: nn.Module) -> None:
        """Keeps which tensors and other attributes the modules of a model have."""
        self.models.append(model)
        found = [module for module in model.modules() if id(module) not in self.kept]
        self.kept.update(map(id, found))
        own = [held for module in found for held in vars(module).values() if isinstance(held, GENERATORS)]
        self.states.append(State([*found, *own], [], sys.maxsize, can_keep=lambda tensor: False))
        for parameter in model.parameters():
            self.keep_gradient(parameter)

    def keep_gradient(self, leaf: Tensor) -> None:
        """Keeps which gradient a tensor has."""
        self.leaves[id(leaf)] = leaf
        self.gradients.append((leaf, leaf.grad))

    def __enter__(self) -> None:
        self.random = random_state()
        self.states.append(State([self.arguments], [], sys.maxsize, can_keep=lambda tensor: False))
        models = self.models or [model for model in (self.observer.model,) if model is not None]
        self.models = []
        for model in models:
            self.keep_model(model)
        self.gradients += [(leaf, leaf.grad) for leaf in self.leaves.values()]

    def __exit__(self, *error: object) -> None:
        for state in reversed(self.states):
            state.restore()
        for leaf, gradient in reversed(self.gradients):
            leaf.grad = gradient
        self.observer.memory.restore()
        for generator, begin in self.observer.generators.values():
            generator.set_state(begin)
        set_random_state(self.random)
        self.states.clear()
        self.gradients.clear()
        self.kept.clear()
