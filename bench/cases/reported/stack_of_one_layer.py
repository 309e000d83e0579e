"""A list times three repeats one residual layer, where three layers with weights of their own were meant.

Fact: same
Where: layers
Steps: 2
Report: zalandoresearch/pytorch-vq-vae#2, GitHub
Missed: a module that stands several times in one list is not told from shared weights that are meant
"""

import torch
from torch import nn

torch.manual_seed(0)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.wide, self.back = nn.Conv2d(width, 2 * width, 3, padding=1), nn.Conv2d(2 * width, width, 1)

    def forward(self, x):
        return x + self.back(self.wide(x.relu()).relu())


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Residual(8)] * 3)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x.relu()


model = nn.Sequential(nn.Conv2d(3, 8, 4, 2, 1), Stack(), nn.ConvTranspose2d(8, 3, 4, 2, 1))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
images = torch.randn(8, 3, 12, 12)


def step(i=0):
    loss = nn.functional.mse_loss(model(images), images)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
