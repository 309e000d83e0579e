"""Gradients of two micro-batches are summed before each step, and never set to zero after it.

Fact: accumulated_gradient
Fact: those of the step before
Where: all 4 parameters of Sequential
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.GELU(), torch.nn.Linear(64, 5))
optimizer = torch.optim.SGD(net.parameters(), 0.05)
inputs, labels = torch.randn(128, 16), torch.randint(0, 5, (128,))


def step(i=0):
    total = 0.0
    for x, y in zip(inputs.chunk(2), labels.chunk(2), strict=True):
        loss = F.cross_entropy(net(x), y) / 2
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


if __name__ == "__main__":
    for i in range(20):
        print(i, step(i))
