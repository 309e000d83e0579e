"""Rotary positions are counted in bfloat16: beyond 256 neighbors share an angle.

Fact: rounded_positions
Fact: bfloat16
Line: positions = torch.arange(x.shape[1], dtype=x.dtype)
"""

import torch

torch.manual_seed(0)


class Rotary(torch.nn.Module):
    def forward(self, x):
        positions = torch.arange(x.shape[1], dtype=x.dtype)
        rates = 1 / 10000 ** (torch.arange(0, x.shape[2], 2, dtype=torch.float32) / x.shape[2])
        angles = (positions[:, None] * rates.to(x.dtype)).repeat(1, 2)
        half = x.shape[2] // 2
        turned = torch.cat((-x[..., half:], x[..., :half]), -1)
        return x * angles.cos() + turned * angles.sin()


model = torch.nn.Sequential(torch.nn.Linear(32, 32), Rotary()).to(torch.bfloat16).eval()


def step(i=0):
    with torch.no_grad():
        return model(torch.randn(1, 1024, 32, dtype=torch.bfloat16)).float().abs().mean().item()


if __name__ == "__main__":
    print(step())
