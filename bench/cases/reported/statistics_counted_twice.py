"""A checkpointed block runs again in the backward pass, and its batch norm takes each batch in twice.

Fact: running
Fact: twice
Where: norm
Steps: 2
Report: pytorch/pytorch#96136, GitHub
Missed: that a batch norm takes the same batch in twice, the second time in backward, is not told
"""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)

    def forward(self, x):
        return x + self.norm(self.conv(x)).relu()


stem, blocks, head = nn.Conv2d(3, 8, 3), nn.ModuleList([Block(8), Block(8)]), nn.Linear(8, 5)
optimizer = torch.optim.SGD([*stem.parameters(), *blocks.parameters(), *head.parameters()], 0.05, momentum=0.9)
images, labels = torch.randn(16, 3, 14, 14) + 0.5, torch.randint(0, 5, (16,))


def step(i=0):
    x = stem(images)
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=False)
    loss = nn.functional.cross_entropy(head(x.mean((2, 3))), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
