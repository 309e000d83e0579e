"""Defines small models and steps that the tests of the recorder share, and the references they are compared with."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import nbkit
from nbkit import Trace
from sample_models.llama import LLAMA_TINY, Llama
from sample_models.rwkv4 import RWKV4, RWKV4_TINY

Step = Callable[[], Any]


class ConvNet(nn.Module):
    """Has a convolution, BatchNorm (buffers change in training) and pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:  # (B, 2, 4, 4) -> (B, 3)
        return self.head(F.max_pool2d(F.relu(self.norm(self.conv(x)), inplace=True), 2).flatten(1))


class GRUNet(nn.Module):
    """Has a GRU and a linear head on its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(3, 8, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, 3) -> (B, 3)
        return self.head(self.gru(x)[0][:, -1])


def mlp() -> nn.Sequential:
    """Makes two dropouts in a row of layers: both must draw what they would draw untraced."""
    return nn.Sequential(
        nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 16), nn.Tanh(), nn.Dropout(0.5), nn.Linear(16, 3)
    )


MODELS: dict[str, Callable[[], nn.Module]] = {
    "rwkv4": lambda: RWKV4(RWKV4_TINY),
    "llama": lambda: Llama(LLAMA_TINY),
    "mlp": mlp,
    "conv": ConvNet,
    "gru": GRUNet,
}
SHAPES = {"mlp": (5, 6), "conv": (5, 2, 4, 4), "gru": (5, 7, 3)}
OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
}


def loss_of(model: nn.Module, name: str) -> Tensor:
    """Returns the loss on a random batch drawn from the global generator, so that the RNG state matters."""
    if name in ("rwkv4", "llama"):
        ids = torch.randint(0, 96, (2, 5))
        return model(ids[:, :-1], ids[:, 1:])
    dtype = next(model.parameters()).dtype
    return F.cross_entropy(model(torch.randn(*SHAPES[name], dtype=dtype)), torch.randint(0, 3, (5,)))


def trained(name: str, optimizer: str, steps: int = 3, dtype: torch.dtype = torch.float32) -> Iterator[Any]:
    """Runs three training steps from a fixed seed; returns all that a step leaves behind, one value after the other."""
    torch.manual_seed(7)
    model = MODELS[name]().to(dtype)
    updates = OPTIMIZERS[optimizer](model.parameters())
    for _ in range(steps):
        updates.zero_grad()
        loss = loss_of(model, name)
        loss.backward()
        updates.step()
        yield loss.detach()
        yield from (parameter.grad for parameter in model.parameters())
    yield from (*model.parameters(), *model.buffers())
    yield from (value for state in updates.state.values() for value in state.values())
    yield torch.get_rng_state()


def train_step(name: str = "mlp", optimizer: str = "adamw") -> Step:
    """Returns one training step of a model that exists already, as a function."""
    model = MODELS[name]()
    updates = OPTIMIZERS[optimizer](model.parameters())

    def step() -> None:
        updates.zero_grad()
        loss_of(model, name).backward()
        updates.step()

    return step


def bits(values: Any) -> list[Any]:
    """Returns values as Python data that compares equal only if every bit of every tensor is the same."""
    return [raw(value) if isinstance(value, Tensor) else value for value in values]


def raw(tensor: Tensor) -> tuple[Any, ...]:
    dense = tensor.detach().resolve_conj().resolve_neg().contiguous()
    flags = (tensor.dtype, tensor.shape, tensor.stride(), tensor.requires_grad, tensor.is_leaf)
    return (*flags, dense.reshape(-1).view(torch.uint8).numpy().tobytes())


def record(step: Step, **options: Any) -> Trace:
    """Returns the trace of one run of `step`."""
    with nbkit.optrace(**options) as trace:
        step()
    return trace


class SeenOps(TorchDispatchMode):
    """Counts the ops that reach a bare dispatch mode, torch's own range markers and metadata ops aside."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace not in ("profiler", "prim"):
            self.counts[str(func)] += 1
        return func(*args, **(kwargs or {}))


def seen_ops(step: Step) -> Counter[str]:
    """Returns the multiset of the ops of `step` as a bare dispatch mode sees them."""
    with SeenOps() as seen:
        step()
    return seen.counts


def recorded_ops(trace: Trace) -> Counter[str]:
    """Returns the multiset of the aten-level ops of a trace."""
    return Counter(trace.ops["op"][trace.ops["level"] == "aten"])


def in_any_mode(ops: Counter[str]) -> Counter[str]:
    """Returns the ops without what torch does otherwise where a dispatch mode is on.

    There it lets the mode see detach() of saved values and the clone of an in-place op's saved input, adds gradients
    that meet out of place, takes view in reshape, sees ops without tensors, and does not see detach_().
    """
    counts = Counter(ops)
    counts["aten.add.Tensor"] += counts.pop("aten.add_.Tensor", 0)
    counts["aten.view.default"] += counts.pop("aten._reshape_alias.default", 0)
    hidden = "detach.default detach_.default clone.default promote_types.default"
    for name in hidden.split():
        counts.pop(f"aten.{name}", None)
    return +counts


def aten(trace: Trace, name: str | None = None) -> Any:
    """Returns the aten rows of a trace, or those of one packet (`aten.add`)."""
    rows = trace.ops[trace.ops["level"] == "aten"]
    return rows if name is None else rows[rows["op"].str.startswith(f"{name}.")]


def tensor_rows(trace: Trace, name: str, role: str) -> Any:
    """Returns tensor rows of a role of the ops of one packet, in call order."""
    return trace.tensors[trace.tensors["op_id"].isin(aten(trace, name)["op_id"]) & (trace.tensors["role"] == role)]
