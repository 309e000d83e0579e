"""Keeps what is known of the parameters and buffers of a model while a recording runs."""

import re
from collections.abc import Container, Iterator
from typing import Any, NamedTuple
from weakref import ref

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from nbkit.capture.audit.measures import NO_GRADIENT, Gradient, later, measured_gradient, memory_of, values_of
from nbkit.capture.raw.tensor_registry import TensorRegistry

# Attributes that are meant for requires_grad.
FREEZE = re.compile(r"requires?d?_?grad(?:ient)?s?(?<!requires_grad)")


class Held(NamedTuple):
    """Describes one name of a tensor that a model holds."""

    name: str
    kind: str  # parameter or buffer
    module: str
    owner: nn.Module
    tensor: Tensor
    tied_with: str | None


class Update(NamedTuple):
    """Describes how a step of an optimizer met one parameter."""

    step: int  # as in ops.step
    storage: int | None  # of the gradient, as in tensors; null where there is none
    is_done: bool  # no GradScaler skipped it
    has_closure: bool  # gradients are of its last backward pass
    has_gradient: bool
    rate: float | None


class Followed:
    """Holds what the steps of a recording did with one parameter."""

    def __init__(self) -> None:
        self.own: Gradient | None = None  # as its optimizer met it
        self.skipped: Gradient | None = None  # as a GradScaler met it that skipped the step
        self.other: Gradient | None = None  # as it was at a step of another optimizer
        self.updates: list[Update] = []
        self.learning_rate: float | None = None
        self.weight_decay: float | None = None
        self.in_optimizer = False
        # Steps of other optimizers that left it a gradient: as in ops.step, and its memory as in tensors.
        self.foreign: list[tuple[int, int | None]] = []
        # The gradient that was there before the recording, by its memory: swap_tensors() refuses tensors with weak
        # references. Once its optimizer has stepped: whether that step still met it.
        self.earlier: Any = None
        self.earlier_version = -1
        self.met_earlier = False

    def gradient(self) -> Gradient | None:
        """Returns what was seen at the steps; null if there was none."""
        return self.own or self.skipped or self.other

    def note_step(self, gradient: Tensor | None, update: Update, *, has_backward: bool = False) -> None:
        """Notes a step of the optimizer that holds it, and the gradient that it met.

        One that was there before, and to which no backward pass of the recording added, is none that it got.
        """
        is_as_before = False
        if not self.updates and self.earlier is not None and gradient is not None:
            self.met_earlier = self.earlier() is memory_of(gradient)
            is_as_before = has_backward and self.met_earlier and gradient._version == self.earlier_version
        self.earlier = None
        self.updates.append(update)
        found = measured_gradient(gradient)
        if is_as_before and found is not None and found.state != "non_finite":
            found = NO_GRADIENT
        if update.is_done:
            self.own = later(self.own, found)
        else:
            self.skipped = later(self.skipped, found)

    def note_rates(self, learning_rate: Any, weight_decay: Any) -> None:
        """Notes the settings of its group; a learning rate may be a tensor."""
        rates = [float(rate) for rate in (learning_rate,) if rate is not None]
        self.learning_rate = max([*rates, *([] if self.learning_rate is None else [self.learning_rate])], default=None)
        self.weight_decay = None if weight_decay is None else float(weight_decay)


class AuditedModel:
    """Holds copies of a model's tensors as they were, and what the steps did with each of its parameters.

    Tensors of other models, whose ids are `known`, are theirs. One that `is_inner` was called by a model that does not
    hold it.
    """

    def __init__(self, model: nn.Module, known: Container[int] = (), is_inner: bool = False) -> None:
        self.model: Any = ref(model)
        self.is_inner = is_inner
        self.type = type(model).__name__
        self.before: dict[str, Tensor] = {}
        self.followed: dict[str, Followed] = {}
        self.hooks: dict[str, list[int]] = {}  # numbers of hooks by module, at each step of an optimizer
        for held in held_tensors(model):
            if held.tied_with is None and id(held.tensor) not in known and not is_stand_in(held):
                self._note_earlier(held, self.met(held))

    def met(self, held: Held) -> Followed:
        """Returns what is known of a parameter; one that was not there at first is kept as it is now."""
        if held.name not in self.followed:
            values = values_of(held.tensor)
            if values is not None:
                self.before[held.name] = values.detach().clone()
        return self.of(held.name)

    def _note_earlier(self, held: Held, followed: Followed) -> None:
        gradient = held.tensor.grad if held.tensor.is_leaf else None
        found = measured_gradient(gradient)
        memory = None if gradient is None else memory_of(gradient)
        if gradient is not None and memory is not None and found is not None and found.state not in ("none", "zero"):
            followed.earlier = ref(memory)
            followed.earlier_version = -1 if gradient.is_inference() else gradient._version

    def held(self) -> list[Held]:
        """Returns what the model holds now; nothing if it is gone."""
        model = self.model()
        return [] if model is None else list(held_tensors(model))

    def count_hooks(self) -> None:
        """Notes how many hooks each module has now."""
        model = self.model()
        for path, module in () if model is None else model.named_modules():
            self.hooks.setdefault(path, []).append(hook_count(module))

    def of(self, name: str) -> Followed:
        """Returns what is known of a parameter, also of one that joined the model later."""
        return self.followed.setdefault(name, Followed())


def held_tensors(model: nn.Module) -> Iterator[Held]:
    """Yields parameters, then buffers, with each of their names; without those that have no size yet."""
    named = list(model.named_modules())
    for kind, store in (("parameter", "_parameters"), ("buffer", "_buffers")):
        first: dict[int, str] = {}
        for path, module in named:
            for key, tensor in getattr(module, store).items():
                if tensor is None or is_lazy(tensor):
                    continue
                name = f"{path}.{key}" if path else key
                yield Held(name, kind, path, module, tensor, first.get(id(tensor)))
                first.setdefault(id(tensor), name)


def hook_count(module: nn.Module) -> int:
    """Returns how many hooks a module runs when it is called, and in its backward pass."""
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return sum(len(getattr(module, kind)) for kind in kinds)


def misnamed_freezes(model: AuditedModel) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yields (module, attribute, names) of parameters that need a gradient where such an attribute is False."""
    held = [one for one in model.held() if one.kind == "parameter" and one.tensor.requires_grad]
    marked: dict[tuple[str, str], list[str]] = {}
    for one in held:
        for key, value in vars(one.tensor).items():
            if value is False and FREEZE.fullmatch(key):
                marked.setdefault((one.module, key), []).append(one.name)
    yield from ((module, key, tuple(names)) for (module, key), names in marked.items())
    root = model.model()
    for path, module in () if root is None else root.named_modules():
        if vars(module).get("requires_grad") is False:
            yield (
                path,
                "requires_grad",
                tuple(one.name for one in held if f".{one.name}".startswith(f".{path}." if path else ".")),
            )


def is_stand_in(held: Held) -> bool:
    """Returns whether a tensor takes the place of a parameter for one call, as torch.func.functional_call has it."""
    return held.kind == "parameter" and not isinstance(held.tensor, nn.Parameter)


def unset_statistics(model: AuditedModel) -> Iterator[str]:
    """Yields the modules whose running mean is 0 and variance 1 everywhere, as no batch leaves them."""
    found: dict[str, dict[str, Tensor]] = {}
    for held in model.held():
        name = held.name.rpartition(".")[2]
        if held.kind == "buffer" and name in ("running_mean", "running_var"):
            values = values_of(held.tensor)
            if values is not None:
                found.setdefault(held.module, {})[name] = values
    for module, statistics in found.items():
        if len(statistics) == 2 and not statistics["running_mean"].any() and (statistics["running_var"] == 1).all():
            yield module


def storage_of(gradient: Tensor | None, registry: TensorRegistry) -> int | None:
    """Returns the number of a gradient's memory, as in tensors.storage_id; null where there is none."""
    memory = None if gradient is None else memory_of(gradient)
    return None if memory is None else registry.find_storage(memory)
