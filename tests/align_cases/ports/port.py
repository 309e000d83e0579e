"""Port is a pair of implementations of one model on the same weights, with the inputs on which they are compared."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

VOCABULARY, BATCH, LENGTH = 50, 2, 10
FLOAT32 = 1e-5  # of two orders of summation in float32, on outputs of 2 or 3 layers


@dataclass(frozen=True)
class Port:
    """Holds two implementations; either `args` or `kwargs` are the inputs of both.

    `tolerance` bounds |right - left| over |left|, 2-norms of the output.
    """

    name: str
    left: Any
    right: Any
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    tolerance: float = FLOAT32
    note: str = ""

    @property
    def inputs(self) -> tuple[Any, ...] | dict[str, Any]:
        """Returns what opalign takes as inputs."""
        return dict(self.kwargs) if self.kwargs else self.args


def ids(vocabulary: int = VOCABULARY, length: int = LENGTH) -> Tensor:
    """Returns token ids (BATCH, length), no two neighbors alike."""
    return torch.randint(vocabulary, (BATCH, length), generator=torch.Generator().manual_seed(5))


def randomised(model: nn.Module, seed: int = 0) -> nn.Module:
    """Gives each parameter values of its own, of the size at which every op matters, and returns the model for use."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() > 1:
                parameter.copy_(values * spread(name, parameter))
            else:
                parameter.add_(values, alpha=0.2)
    return model.eval().requires_grad_(False)


def spread(name: str, parameter: Tensor) -> float:
    """Returns the standard deviation of a weight: 1 over the root of what it sums, so that activations keep theirs."""
    if "emb" in name or "wte" in name or "wpe" in name:
        return 0.7
    return parameter.shape[0 if "c_" in name else -1] ** -0.5  # Conv1D holds its weight the other way


Weights = Mapping[str, Tensor]


def translated(name: str, names: Mapping[str, str]) -> str:
    """Returns what the other side calls a parameter, part by part of its name."""
    return ".".join(names.get(part, part) for part in name.split("."))


def renamed(
    right: nn.Module, left: nn.Module, names: Mapping[str, str], parts: Mapping[str, Sequence[str]] = {}
) -> nn.Module:
    """Loads the left's weights into the right one; `parts` are those that it holds one below the other in one."""

    def value(name: str, weights: Weights) -> Tensor:
        other = translated(name, names).split(".")
        fused = next((part for part in other if part in parts), None)
        if fused is None:
            return weights[".".join(other)]
        return torch.cat([weights[".".join(other).replace(fused, part)] for part in parts[fused]])

    return loaded(right, left, value)


def loaded(right: nn.Module, left: nn.Module, value: Callable[[str, Weights], Tensor]) -> nn.Module:
    """Gives each parameter of the right one `value(its name, the left's weights)`."""
    weights = left.state_dict()
    right.load_state_dict({name: value(name, weights).clone() for name in right.state_dict()})
    return right.eval().requires_grad_(False)


def output(run: Any, port: Port) -> Tensor:
    """Returns the float64 output of a side: the logits, or the last hidden state, of a model of transformers."""
    with torch.no_grad():
        found = (run.module() if isinstance(run, torch.export.ExportedProgram) else run)(*port.args, **port.kwargs)
    for name in ("logits", "last_hidden_state"):
        found = getattr(found, name, found)
    return found.double()


def difference(port: Port) -> float:
    """Returns |right - left| over |left|, 2-norms of the output; NaN where either holds NaN."""
    left, right = output(port.left, port), output(port.right, port)
    assert left.shape == right.shape
    return float((right - left).norm() / left.norm())
