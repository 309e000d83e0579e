"""Losses are kept as tensors, not as numbers: the graphs of all steps stay alive.

Fact: kept_graph
Fact: memory grows with each step
Line: losses.append(F.cross_entropy(net(inputs), labels))
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
inputs, labels = torch.randn(256, 64), torch.randint(0, 10, (256,))
losses = []


def step(i=0):
    loss = F.cross_entropy(net(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(F.cross_entropy(net(inputs), labels))
    return sum(losses)


if __name__ == "__main__":
    for i in range(20):
        print(i, float(step(i)) / len(losses))
