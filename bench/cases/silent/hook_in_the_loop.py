"""Each step registers the hook that looks at features once more.

Fact: hooks
Fact: each step adds some
Steps: 4
"""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
x, y = torch.randn(32, 8), torch.randint(0, 3, (32,))


def step(i=0):
    norms = {}
    net[1].register_forward_hook(lambda module, given, result: norms.update(hidden=float(result.norm())))
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(4):
        print(i, step(i))
