"""Mixup draws one permutation for the images and another one for the labels: the second label is of no image there.

Fact: order
Line: other_labels = labels[torch.randperm(len(labels))]
Steps: 2
Report: xudonmao/VMT#1, GitHub
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 8, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 7 * 7, 5))
optimizer = torch.optim.SGD(net.parameters(), 0.05)
digits, classes = torch.rand(60, 1, 16, 16), torch.randint(0, 5, (60,))


def step(i=0):
    images, labels = digits[20 * i : 20 * i + 20], classes[20 * i : 20 * i + 20]
    share = 0.7
    mixed = share * images + (1 - share) * images[torch.randperm(len(images))]
    other_labels = labels[torch.randperm(len(labels))]
    scores = net(mixed)
    loss = share * F.cross_entropy(scores, labels) + (1 - share) * F.cross_entropy(scores, other_labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
