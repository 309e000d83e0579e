"""Small opcost traces: four layers that are alike and a head; the same with predicted times."""

from functools import cache

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

import nbkit
from nbkit.schema import TEXT
from nbkit.trace.trace import Trace


class Stack(nn.Module):
    """Four layers in a list, and a head: 4 x 16 -> 16, 16 -> 8."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))
        self.head = nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = torch.relu(block(x))
        return torch.as_tensor(self.head(x))


@cache
def layers() -> Trace:
    """The cost of a training step of a Stack with 32 rows: forward, backward, optimizer."""
    model = Stack()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)

    def step() -> None:
        model(torch.ones(32, 16)).sum().backward()
        optimizer.step()

    return nbkit.opcost(name="layers").run(step)


def work(trace: Trace) -> np.ndarray:
    """All FLOPs of each op as far as they are known, those of elementwise ops too."""
    names = [name for name in ("flops", "elementwise_flops") if name in trace.costs]
    known = [trace.costs[name].to_numpy(np.float64, na_value=0.0) for name in names]
    return np.asarray(np.sum(known, axis=0))


@cache
def with_times(trace: Trace) -> Trace:
    """The trace with the times of a device of 1 GFLOP/s and 1 GB/s, as its columns `time_us` and `bound` would be."""
    costs = trace.costs
    moved_us = (costs["read_bytes"] + costs["written_bytes"]).to_numpy(np.float64) / 1e3
    compute_us = work(trace) / 1e3
    bound = np.where(
        np.maximum(moved_us, compute_us) < 1.0, "launch", np.where(moved_us > compute_us, "memory", "compute")
    )
    timed = Trace({name: frame for name, frame in trace.frames.items() if name != "costs"}, trace.meta)
    timed.frames["costs"] = costs.assign(
        time_us=np.maximum(np.maximum(moved_us, compute_us), 1.0), bound=pd.Series(bound, dtype=TEXT)
    )
    return timed
