"""nll_loss gets the scores of the last layer, not logarithms of probabilities: the loss falls below zero without end.

Fact: nll_loss
Fact: logarithm
Line: loss = F.nll_loss(model(points), labels)
Steps: 2
Report: yanx27/Pointnet_Pointnet2_pytorch#30, GitHub
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.points, self.labels = nn.Conv1d(3, 32, 1), nn.Linear(32, 7)

    def forward(self, x):
        return self.labels(self.points(x).relu().amax(-1))


model = PointNet()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
points, labels = torch.randn(12, 3, 40), torch.randint(0, 7, (12,))


def step(i=0):
    loss = F.nll_loss(model(points), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
