"""Weights are initialised after the adapters were added: both halves of each adapter are 0, and stay so.

Fact: exactly 0
Where: down
Steps: 3
Report: nvidia-cosmos/cosmos-predict2.5#15, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)


class Adapted(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down, self.up = nn.Linear(base.in_features, rank, False), nn.Linear(rank, base.out_features, False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.proj = nn.LayerNorm(16).requires_grad_(False), Adapted(nn.Linear(16, 16))

    def init_weights(self):
        for layer in self.proj.children():
            nn.init.trunc_normal_(layer.weight, std=0.02) if layer.bias is not None else nn.init.zeros_(layer.weight)

    def forward(self, x):
        return x + self.proj(self.norm(x))


block, head = Block(), nn.Linear(16, 3)
block.init_weights()
optimizer = torch.optim.AdamW([*block.proj.down.parameters(), *block.proj.up.parameters(), *head.parameters()], 1e-3)
x, y = torch.randn(20, 16), torch.randint(0, 3, (20,))


def step(i=0):
    loss = nn.functional.cross_entropy(head(block(x)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(3):
        print(i, step(i))
