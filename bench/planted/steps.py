"""The training steps that faults are planted in: small, on any device, in any dtype, with each AdamW of torch."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.planted.models import (
    NODES,
    Attention,
    Autoencoder,
    ConvNet,
    GraphNet,
    Recurrent,
    StateSpace,
    Transformer,
)
from sample_models.llama import LLAMA_TINY, Llama
from sample_models.rwkv4 import RWKV4, RWKV4_TINY

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
AUTOCAST = "autocast"  # float32 parameters, bfloat16 where torch.autocast says so


@dataclass(frozen=True)
class Recipe:
    """A model, the size of its inputs (of ids: how many there are), and the options of its AdamW."""

    make: Callable[[], nn.Module]
    inputs: tuple[int, ...] | int
    adamw: dict[str, bool]


MODELS = {
    "llama": Recipe(lambda: Llama(LLAMA_TINY), 96, {"foreach": False}),
    "rwkv4": Recipe(lambda: RWKV4(replace(RWKV4_TINY, layers=1)), 96, {"foreach": True}),
    "conv": Recipe(ConvNet, (3, 3, 14, 14), {"fused": True}),
    "transformer": Recipe(Transformer, 31, {"foreach": False, "amsgrad": True}),
    "recurrent": Recipe(Recurrent, (3, 5, 7), {"foreach": True, "amsgrad": True}),
    "autoencoder": Recipe(Autoencoder, (3, 21, 33), {"fused": True}),
    "state space": Recipe(StateSpace, 31, {"foreach": True}),
    "graph": Recipe(GraphNet, (3, NODES, 7), {"foreach": False}),
    "attention": Recipe(Attention, 31, {"fused": True, "amsgrad": True}),
}
# Models of ids that classify; the others tell the next one.
CLASSIFIERS = (Transformer, StateSpace, Attention)
BATCH, LENGTH = 3, 7  # odd, so that a wrong axis shows


@dataclass
class Step:
    """A model that has been trained by one step, so that its optimizer has a state; run() is the next step."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    inputs: tuple[Tensor, ...]
    autocast: bool

    def run(self) -> None:
        """Runs a step: zero the gradients, forward, backward, update."""
        self.optimizer.zero_grad()
        with torch.autocast(self.inputs[0].device.type, torch.bfloat16, enabled=self.autocast):
            loss = self._loss()
        loss.backward()
        self.optimizer.step()

    def _loss(self) -> Tensor:
        if isinstance(self.model, Llama | RWKV4):
            loss: Tensor = self.model(*self.inputs)
            return loss
        x, targets = self.inputs
        return F.cross_entropy(self.model(x), targets)


def make_step(name: str, dtype: str, device: torch.device | str, seed: int = 0) -> Step:
    """Returns a step of one of MODELS in one of DTYPES or under autocast; the same seed makes the same step."""
    torch.manual_seed(seed)
    recipe, wanted = MODELS[name], DTYPES.get(dtype, torch.float32)
    model = recipe.make().to(wanted).to(device)
    # 1e-8 is zero in float16.
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=1e-8 if dtype != "float16" else 1e-4, **recipe.adamw)
    inputs = tuple(tensor.to(device) for tensor in _inputs(recipe, wanted))
    step = Step(model, optimizer, inputs, dtype == AUTOCAST)
    step.run()
    return step


def _inputs(recipe: Recipe, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    if not isinstance(recipe.inputs, int):
        return torch.randn(recipe.inputs).to(dtype), torch.randint(5, recipe.inputs[:1])
    if recipe.make in CLASSIFIERS:
        return torch.randint(recipe.inputs, (BATCH, LENGTH)), torch.randint(5, (BATCH,))
    ids = torch.randint(recipe.inputs, (BATCH, LENGTH + 1))
    return ids[:, :-1], ids[:, 1:]
