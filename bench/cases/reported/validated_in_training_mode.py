"""The validation runs under no_grad() and without eval(): dropout is on, and batch norm learns from what is held back.

Fact: training mode
Line: hits = (model(held_back).argmax(-1) == held_labels).float().mean()
Steps: 3
Report: udacity/deep-learning-v2-pytorch#3, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(24, 40), nn.BatchNorm1d(40), nn.ReLU(), nn.Dropout(0.4), nn.Linear(40, 4))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
values, labels = torch.randn(64, 24), torch.randint(0, 4, (64,))
held_back, held_labels = torch.randn(16, 24) + 1, torch.randint(0, 4, (16,))


def step(i=0):
    loss = nn.functional.cross_entropy(model(values), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        hits = (model(held_back).argmax(-1) == held_labels).float().mean()
    return loss.item(), hits.item()


if __name__ == "__main__":
    for i in range(3):
        print(i, step(i))
