"""F.normalize() takes dimension 1 by default, which is that of the tokens, not of the features.

Fact: dim
Line: return F.normalize(self.project(experts))
Steps: 2
Report: gabeur/mmt#1, GitHub
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class ReduceDim(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(40, 12)

    def forward(self, experts):
        return F.normalize(self.project(experts))


reduce, text = ReduceDim(), nn.Linear(25, 12)
optimizer = torch.optim.Adam([*reduce.parameters(), *text.parameters()], 1e-3)
videos, captions = torch.randn(10, 7, 40), torch.randn(10, 25)


def step(i=0):
    seen = reduce(videos).mean(1)
    said = F.normalize(text(captions), dim=-1)
    loss = F.cross_entropy(said @ seen.T / 0.05, torch.arange(10))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
