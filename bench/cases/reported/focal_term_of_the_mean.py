"""A focal loss weighs the mean cross entropy by its own size: hard pixels get no more weight than easy ones.

Fact: mean
Fact: cross_entropy
Line: focal = (1 - torch.exp(-entropy)) ** gamma * entropy
Steps: 2
Report: jfzhang95/pytorch-deeplab-xception#133, GitHub
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.Conv2d(12, 4, 1))
optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
images, labels = torch.randn(6, 3, 20, 20), torch.zeros(6, 20, 20, dtype=torch.long)
labels[:, 8:11, 8:11] = torch.randint(1, 4, (6, 3, 3))


def focal_loss(scores, labels, gamma=2.0):
    entropy = F.cross_entropy(scores, labels)
    focal = (1 - torch.exp(-entropy)) ** gamma * entropy
    return focal.mean()


def step(i=0):
    loss = focal_loss(net(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
