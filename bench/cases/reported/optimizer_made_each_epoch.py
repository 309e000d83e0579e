"""Each epoch makes a new Adam, which forgets the averages of the gradients.

Fact: Adam
Fact: state
Line: optimizer = torch.optim.Adam(model.parameters(), 1e-3)
Steps: 4
Report: alan-turing-institute/deepsensor#47, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(9, 32), nn.SiLU(), nn.Linear(32, 1))
stations, temperatures = torch.randn(48, 9), torch.randn(48, 1)


def train_epoch(model):
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    losses = []
    for x, y in zip(stations.split(16), temperatures.split(16), strict=True):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def step(i=0):
    return train_epoch(model)


if __name__ == "__main__":
    for i in range(4):
        print(i, step(i))
