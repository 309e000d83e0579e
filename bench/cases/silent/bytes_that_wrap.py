"""The difference of two images is taken in bytes, before they become numbers.

Fact: beyond uint8
Fact: it holds 0 to 255
Steps: 2
"""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 14 * 14, 1))
optimizer = torch.optim.SGD(net.parameters(), 1e-3)
before, after = (torch.randint(0, 256, (4, 3, 16, 16), dtype=torch.uint8) for _ in range(2))
moved = torch.randint(0, 2, (4, 1)).float()


def step(i=0):
    change = (after - before).float() / 255
    loss = nn.functional.binary_cross_entropy_with_logits(net(change), moved)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
