"""The backbone is frozen, and model.train() keeps its batch norms moving.

Fact: frozen (requires_grad=False) but in training mode
Fact: running statistics move
Steps: 2
"""

import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
model = nn.Sequential(backbone, nn.Linear(8, 4))
backbone.requires_grad_(False)
optimizer = torch.optim.SGD(model[1].parameters(), 0.1)
images, labels = torch.randn(8, 3, 12, 12) * 3 + 1, torch.randint(0, 4, (8,))


def step(i=0):
    model.train()
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
