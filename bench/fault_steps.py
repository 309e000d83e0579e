"""The training steps that faults are planted in: small, on any device, in any dtype, with each AdamW of torch."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sample_models.llama import LLAMA_TINY, Llama
from sample_models.rwkv4 import RWKV4, RWKV4_TINY

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
AUTOCAST = "autocast"  # float32 parameters, bfloat16 where torch.autocast says so


class ConvNet(nn.Module):
    """Convolutions, BatchNorm and GroupNorm, pooling of both kinds; sizes are odd, so that a wrong axis shows."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 9, 3, stride=2)
        self.norm, self.groups = nn.BatchNorm2d(6), nn.GroupNorm(3, 9)
        self.head = nn.Linear(9, 5)

    def forward(self, x: Tensor) -> Tensor:  # (B, 3, 14, 14) -> (B, 5)
        x = F.max_pool2d(F.relu(self.norm(self.first(x)), inplace=True), 2)
        x = F.avg_pool2d(F.gelu(self.groups(self.second(x))), 3)
        return self.head(x.flatten(1).sigmoid())


class Transformer(nn.Module):
    """Attention by hand with a mask and dropout, LayerNorm, Tanh and Softplus."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(31, 24)
        self.norm, self.qkv, self.out = nn.LayerNorm(24), nn.Linear(24, 72), nn.Linear(24, 24)
        self.mlp = nn.Sequential(nn.LayerNorm(24), nn.Linear(24, 33), nn.Tanh(), nn.Linear(33, 24))
        self.head = nn.Linear(24, 5)

    def forward(self, ids: Tensor) -> Tensor:  # (B, T) -> (B, 5)
        x = self.embedding(ids)
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        hidden = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool, device=ids.device).triu(1)
        scores = (q @ k.transpose(-1, -2) / 24**0.5).masked_fill(hidden, -torch.inf)
        x = x + self.out(F.dropout(scores.softmax(-1), 0.25) @ v)
        x = x + self.mlp(x)
        return self.head(F.softplus(x).mean(1))


class Recurrent(nn.Module):
    """An LSTM and a GRU, one on the other."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.gru = nn.LSTM(7, 9, batch_first=True), nn.GRU(9, 11, batch_first=True)
        self.head = nn.Linear(11, 5)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, 7) -> (B, 5)
        return self.head(self.gru(self.lstm(x)[0])[0][:, -1])


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
}
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
    if recipe.make is Transformer:
        return torch.randint(recipe.inputs, (BATCH, LENGTH)), torch.randint(5, (BATCH,))
    ids = torch.randint(recipe.inputs, (BATCH, LENGTH + 1))
    return ids[:, :-1], ids[:, 1:]
