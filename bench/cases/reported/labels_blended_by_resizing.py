"""Masks of classes are resized like images: between classes 0 and 4 lie pixels of class 1, which nobody drew.

Fact: bilinear
Line: smaller = F.interpolate(masks[:, None].float(), size=(20, 20), mode="bilinear", align_corners=False)
Steps: 2
Report: kornia/kornia#1630, GitHub
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 5, 1))
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
photos = torch.rand(4, 3, 50, 50)
masks = torch.zeros(4, 50, 50, dtype=torch.long)
masks[:, 10:33, 14:37] = 4


def augmented():
    images = F.interpolate(photos, size=(20, 20), mode="bilinear", align_corners=False)
    smaller = F.interpolate(masks[:, None].float(), size=(20, 20), mode="bilinear", align_corners=False)
    return images, smaller[:, 0].long()


def step(i=0):
    images, labels = augmented()
    loss = F.cross_entropy(net(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
