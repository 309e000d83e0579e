"""The warm-up writes one learning rate into all groups, also that of the backbone, which was to learn slowly.

Fact: learning rate
Fact: group
Line: group["lr"] = rate
Steps: 5
Report: katsura-jp/pytorch-cosine-annealing-with-warmup#14, GitHub
Missed: learning rates of groups are not compared with those they were made with
"""

import math

import torch
from torch import nn

torch.manual_seed(0)
backbone, head = nn.Sequential(nn.Linear(30, 32), nn.GELU(), nn.Linear(32, 32)), nn.Linear(32, 6)
groups = [{"params": backbone.parameters(), "lr": 1e-5}, {"params": head.parameters(), "lr": 1e-2}]
optimizer = torch.optim.AdamW(groups)
x, y = torch.randn(40, 30), torch.randint(0, 6, (40,))


class WarmupCosine:
    def __init__(self, optimizer, top, warmup, total):
        self.optimizer, self.top, self.warmup, self.total, self.now = optimizer, top, warmup, total, 0

    def step(self):
        self.now += 1
        done = (self.now - self.warmup) / (self.total - self.warmup)
        rate = self.top * (self.now / self.warmup if done < 0 else 0.5 + 0.5 * math.cos(math.pi * done))
        for group in self.optimizer.param_groups:
            group["lr"] = rate


schedule = WarmupCosine(optimizer, 1e-2, 4, 100)


def step(i=0):
    loss = nn.functional.cross_entropy(head(backbone(x)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(5):
        print(i, step(i))
