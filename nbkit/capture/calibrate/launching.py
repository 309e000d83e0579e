"""Measures what an op of a step takes where it computes next to nothing: of launching, modules, autograd, optimizer."""

from time import perf_counter_ns

import torch
from torch import nn

from nbkit.capture.calibrate.clock import Clock
from nbkit.capture.cost.opcost import opcost

WIDTH, BLOCKS = 8, 8
PHASES = ("forward", "backward", "optimizer")


def launch_times_us(clock: Clock, repeats: int = 10) -> dict[str, float]:
    """Returns the microseconds per aten op in each phase of a training step of layers of 8 elements."""
    model = nn.Sequential(*(_Block() for _ in range(BLOCKS))).to(clock.device)
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.ones(1, WIDTH, device=clock.device)
    now = clock.now if clock.is_cpu else perf_counter_ns
    spans: list[list[int]] = []
    with torch.enable_grad():
        for _ in range(repeats):
            optimizer.zero_grad()
            times = [now()]
            loss = model(x).sum()
            times.append(now())
            loss.backward()
            times.append(now())
            optimizer.step()
            spans.append([after - before for before, after in zip(times, [*times[1:], now()], strict=True)])
        with opcost() as trace:
            model(x).sum().backward()
            optimizer.step()
    counts = trace.costs["phase"].value_counts()
    shortest = (min(span) / 1e3 for span in zip(*spans, strict=True))
    return {phase: float(time / counts[phase]) for phase, time in zip(PHASES, shortest, strict=True)}


class _Block(nn.Module):
    """Holds the modules that most steps are made of."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.first, self.second = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (B, WIDTH) -> (B, WIDTH)
        y = self.first(self.norm(x)).view(len(x), 2, -1).transpose(1, 2)
        out: torch.Tensor = x + self.second(torch.nn.functional.gelu(y.reshape(len(x), -1)))
        return out
