"""The two training steps that recorders are measured on: one bound by launching ops, one by computing them."""

from collections import Counter
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from sample_models.llama import LLAMA_SMALL, Llama, LlamaConfig

LLAMA_WIDE = LlamaConfig(
    vocab_size=256,
    hidden_size=1024,
    intermediate_size=2816,
    num_hidden_layers=8,
    num_attention_heads=16,
    num_key_value_heads=8,
)


class TrainingStep:
    """A LLaMA, its optimizer and one batch (B, T); run() is one training step, forward() only its first part."""

    def __init__(
        self, name: str, config: LlamaConfig, batch: int, length: int, device: torch.device | str = "cpu"
    ) -> None:
        torch.manual_seed(0)
        self.name = name
        self.size = f"{config.num_hidden_layers} layers, width {config.hidden_size}, batch {batch} x {length}"
        self.model = Llama(config).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, foreach=False)
        self.ids = torch.randint(config.vocab_size, (batch, length)).to(device)
        self.targets = torch.randint(config.vocab_size, (batch, length)).to(device)

    def run(self) -> None:
        self.optimizer.zero_grad()
        self.model(self.ids, self.targets).backward()
        self.optimizer.step()

    def forward(self) -> None:
        self.model(self.ids, self.targets)


def launch_bound(device: torch.device | str = "cpu") -> TrainingStep:
    return TrainingStep("launch-bound", LLAMA_SMALL, batch=1, length=32, device=device)


def compute_bound(device: torch.device | str = "cpu") -> TrainingStep:
    return TrainingStep("compute-bound", LLAMA_WIDE, batch=2, length=128, device=device)


def count_ops(step: TrainingStep) -> int:
    """Returns number of aten ops of the step, as a bare dispatch mode sees them."""
    with _Counting() as mode:
        step.run()
    return mode.seen.total()


class _Counting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[Any] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen[func] += 1
        return func(*args, **(kwargs or {}))
