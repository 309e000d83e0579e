"""The angle between equal vectors: the gradient of acos at 1 is infinite, and clamp(-1, 1) lets it through.

Fact: inf
Fact: inputs there: 0
Line: return torch.acos(cosine.clamp(-1, 1))
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Linear(16, 3)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
left = torch.randn(32, 16)
right = torch.randn(32, 16)
right[:8] = left[:8]  # the same view twice


def angle(a, b):
    cosine = (F.normalize(a, dim=-1) * F.normalize(b, dim=-1)).sum(-1)
    return torch.acos(cosine.clamp(-1, 1))


def step(i=0):
    loss = angle(net(left), net(right)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(5):
        print(i, step(i))
