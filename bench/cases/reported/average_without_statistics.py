"""The average of the weights takes in parameters alone: its batch norm keeps the statistics it was made with.

Fact: statistics
Where: norm
Steps: 3
Report: FlyreelAI/sesemi#36, GitHub
"""

import copy

import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 10, 3), nn.BatchNorm2d(10), nn.Linear(10, 4)

    def forward(self, x):
        return self.head(self.norm(self.conv(x)).relu().mean((2, 3)))


net = Net()
average = copy.deepcopy(net).requires_grad_(False).eval()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
images, labels = torch.rand(32, 3, 10, 10) * 4, torch.randint(0, 4, (32,))


def step(i=0):
    loss = nn.functional.cross_entropy(net(images[:24]), labels[:24])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for kept, new in zip(average.parameters(), net.parameters(), strict=True):
            kept.lerp_(new, 0.01)
        right = (average(images[24:]).argmax(-1) == labels[24:]).float().mean()
    return loss.item(), right.item()


if __name__ == "__main__":
    for i in range(3):
        print(i, step(i))
