"""Measures the layers of a model at some steps of a long run: norms of gradients, weights and updates, activations."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.linalg import vector_norm
from torch.optim import Optimizer

from nbkit.capture.audit.measures import has_plain_values
from nbkit.capture.replay.isolated import isolated
from nbkit.capture.watch.share import TimeShare
from nbkit.schema.graphs import LAYER_VALUES

# Modules of more are measured with what they hold. Each of so many steps is measured, and from there on ever fewer: a
# picture of 100,000 steps has no more columns, and the file stays small.
MOST_LAYERS, MOST_STEPS = 48, 500
TIME_SHARE, FIRST_MEASURED = 0.004, 4
Add = Callable[[dict[str, Any]], object]
GRADIENT, WEIGHT, UPDATE, LOWEST, HIGHEST = LAYER_VALUES


class Layer:
    """Holds the parameters of a module, and of what is below it where that is no layer of its own."""

    def __init__(self, name: str) -> None:
        self.name, self.parameters = name, list[Tensor]()
        self.module: nn.Module | None = None


class LayerWatch:
    """Measures a step between begin() and end(), if it is due; gives `add` rows of the frame `metrics`."""

    def __init__(self, add: Add, find: Callable[[], list[Any]]) -> None:
        self.add, self.find = add, find
        self.share = TimeShare(TIME_SHARE)
        self.layers: list[Layer] | None = None
        self.next, self.is_due, self.measured = 0, False, 0
        self.handles: list[Any] = []

    def begin(self, number: int) -> None:
        self.is_due = number >= self.next and (number < FIRST_MEASURED or self.share.is_due())
        if not self.is_due:
            return
        self.number, self.next = number, number + 1 + number // MOST_STEPS
        self.ranges: dict[str, Tensor] = {}
        self.met: list[tuple[str, list[Tensor], list[Tensor], Tensor | None]] = []
        with self.share:
            for layer in self.layers or []:
                if layer.module is not None:
                    self.handles.append(layer.module.register_forward_hook(self._range_of(layer.name)))

    def note(self, optimizer: Optimizer) -> None:
        """Measures gradients and copies the weights that an optimizer is about to change."""
        with self.share:
            if self.layers is None:
                self.layers = layers_of(self.find())
            own = {id(one) for group in optimizer.param_groups for one in group["params"]}
            for layer in self.layers:
                held = [one for one in layer.parameters if id(one) in own]
                if held:
                    gradients = [one.grad for one in held if one.grad is not None and has_plain_values(one.grad)]
                    copies = [one.detach().clone() for one in held]
                    self.met.append((layer.name, held, copies, _norm(gradients) if gradients else None))

    def end(self) -> None:
        """Adds what was measured; values are read all at once."""
        self.unhook()
        if not self.is_due:
            return
        with self.share:
            named = [*self._values()]
            self.met = []
            if named:
                self.measured += 1
                values = torch.stack([value.detach().double().cpu() for _, value in named]).tolist()
                for (name, _), value in zip(named, values, strict=True):
                    self.add({"step": self.number, "name": name, "value": value})

    def unhook(self) -> None:
        """Leaves the modules as they were."""
        for handle in self.handles:
            handle.remove()
        self.handles = []

    def _values(self) -> Iterator[tuple[str, Tensor]]:
        for name, held, copies, gradient in self.met:
            if gradient is not None:
                yield f"{GRADIENT}/{name}", gradient
            yield f"{WEIGHT}/{name}", _norm(copies)
            now = [one.detach() for one in held]
            if [one.shape for one in now] == [one.shape for one in copies]:
                yield f"{UPDATE}/{name}", _norm(torch._foreach_sub(now, copies))
        for name, bounds in self.ranges.items():
            yield f"{LOWEST}/{name}", bounds[0]
            yield f"{HIGHEST}/{name}", bounds[1]

    def _range_of(self, name: str) -> Callable[..., None]:
        def look(module: nn.Module, inputs: Any, output: Any) -> None:
            values = output[0] if isinstance(output, tuple) and output else output
            # While torch compiles a module it sees no more of this than the return.
            if torch.compiler.is_compiling() or not isinstance(values, Tensor) or not has_plain_values(values):
                return
            if values.is_floating_point() and values.numel():
                with isolated():
                    found = torch.stack(values.aminmax())
                    before = self.ranges.get(name, found)
                    self.ranges[name] = torch.stack([before[0].minimum(found[0]), before[1].maximum(found[1])])

        return look


def _norm(tensors: list[Tensor] | tuple[Tensor, ...]) -> Tensor:
    """Returns the 2-norm of all, of float32 at least."""
    norms = torch._foreach_norm(list(tensors))
    whole: Tensor = vector_norm(torch.stack([norm.to(norms[0].device, torch.float32) for norm in norms]))
    return whole


def layers_of(held: list[Any]) -> list[Layer]:
    """Returns the layers of the root models among objects, in the order of their parameters, at most MOST_LAYERS.

    A tensor that several modules hold counts in the first. A path has as many parts as that number allows.
    """
    models = list({id(one): one for one in held if isinstance(one, nn.Module)}.values())
    inner = {id(child) for model in models for child in model.modules() if child is not model}
    roots = [model for model in models if id(model) not in inner and any(True for _ in model.parameters())]
    depth = 1 + max((name.count(".") for model in roots for name, _ in model.named_parameters()), default=0)
    while True:
        layers = _layers(roots, depth)
        if len(layers) <= MOST_LAYERS or depth == 0:
            return layers
        depth -= 1


def _layers(roots: list[nn.Module], depth: int) -> list[Layer]:
    layers: dict[tuple[int, str], Layer] = {}
    for number, root in enumerate(roots):
        for name, parameter in root.named_parameters():
            path = ".".join(name.split(".")[:-1][:depth])
            label = path if len(roots) == 1 and path else "/".join(filter(None, (type(root).__name__, path)))
            layer = layers.setdefault((number, path), Layer(label))
            if parameter.requires_grad and has_plain_values(parameter) and not nn.parameter.is_lazy(parameter):
                layer.parameters.append(parameter)
                layer.module = root.get_submodule(path)
    return [layer for layer in layers.values() if layer.parameters]
