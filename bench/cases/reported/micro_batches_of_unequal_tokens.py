"""Means over the tokens of each micro-batch are averaged: tokens of short answers count for more.

Fact: tokens
Line: (loss / len(micro_batches)).backward()
Steps: 3
Report: verl-project/verl#5625, GitHub
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(90, 16), nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 90))
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
ids, lengths = torch.randint(0, 90, (16, 25)), torch.tensor([24] * 4 + [3] * 4 + [5] * 4 + [20] * 4)
micro_batches = list(zip(ids.split(4), lengths.split(4), strict=True))


def step(i=0):
    total = 0.0
    for texts, sizes in micro_batches:
        labels = texts[:, 1:].masked_fill(torch.arange(24) >= sizes[:, None], -100)
        scores = model(texts[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), labels.flatten())
        (loss / len(micro_batches)).backward()
        total += loss.item()
    optimizer.step()
    optimizer.zero_grad()
    return total


if __name__ == "__main__":
    for i in range(3):
        print(i, step(i))
