"""A focal loss takes the mean of single cross entropies, of which those of ignored targets are 0.

Fact: targets that the loss ignores
Fact: the smaller the loss
Steps: 2
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 5, 1))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
images, labels = torch.randn(4, 3, 16, 16), torch.randint(0, 5, (4, 16, 16))
labels[:, :, 9:] = 255


def step(i=0):
    each = F.cross_entropy(net(images), labels, ignore_index=255, reduction="none")
    loss = each.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
