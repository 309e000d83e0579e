"""Gradients are averaged in the steps that run the wrapped model; every other step uses the bare one.

Fact: had equal values
Fact: each is trained on its own
Where: of Linear and
Report: jxmnop on X, 1778520637193240892
"""

import copy

import torch
import torch.nn.functional as F

torch.manual_seed(0)
replicas = [torch.nn.Linear(16, 5)]
replicas.append(copy.deepcopy(replicas[0]))
optimizers = [torch.optim.SGD(replica.parameters(), 0.1) for replica in replicas]
inputs, labels = torch.randn(2, 32, 16), torch.randint(0, 5, (2, 32))


def step(i=0):
    losses = [F.cross_entropy(replica(x), y) for replica, x, y in zip(replicas, inputs, labels, strict=True)]
    for optimizer, loss in zip(optimizers, losses, strict=True):
        optimizer.zero_grad()
        loss.backward()
    if i % 2 == 0:  # wrapped
        for pair in zip(*(replica.parameters() for replica in replicas), strict=True):
            mean = sum(parameter.grad for parameter in pair) / 2
            for parameter in pair:
                parameter.grad = mean.clone()
    for optimizer in optimizers:
        optimizer.step()
    return losses[0].item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
