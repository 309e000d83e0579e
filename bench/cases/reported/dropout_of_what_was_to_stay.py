"""The share to keep is given to nn.Dropout, which takes the share to drop: nine of ten values are 0.

Fact: dropout
Fact: 0.9
Where: dropout
Steps: 2
Report: piergiaj/pytorch-i3d#58, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)


class Clips(nn.Module):
    def __init__(self, keep=0.9):
        super().__init__()
        self.conv, self.dropout, self.logits = nn.Conv3d(3, 40, 3), nn.Dropout(keep), nn.Linear(40, 6)

    def forward(self, x):
        return self.logits(self.dropout(self.conv(x).relu().mean((2, 3, 4))))


model = Clips()
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
videos, labels = torch.rand(8, 3, 5, 8, 8), torch.randint(0, 6, (8,))


def step(i=0):
    loss = nn.functional.cross_entropy(model(videos), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
