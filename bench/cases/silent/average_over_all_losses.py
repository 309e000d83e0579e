"""The average of all losses so far is computed anew at each step.

Fact: This line runs
Fact: more with each step
Steps: 6
"""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
x, y = torch.randn(32, 8), torch.randint(0, 3, (32,))
losses = []


def step(i=0):
    loss = nn.functional.cross_entropy(net(x), y)
    losses.append(loss.detach())
    average = sum(losses) / len(losses)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return average.item()


if __name__ == "__main__":
    for i in range(6):
        print(i, step(i))
