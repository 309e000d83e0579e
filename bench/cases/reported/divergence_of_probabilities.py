"""kl_div gets the student's probabilities where it expects their logarithms.

Fact: probabilities
Line: distilled = F.kl_div(student, teacher, reduction="batchmean")
Steps: 2
Report: microsoft/ProDA#20, GitHub
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
large = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 5)).eval().requires_grad_(False)
small = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 5))
optimizer = torch.optim.AdamW(small.parameters(), 1e-3)
x, y = torch.randn(32, 12), torch.randint(0, 5, (32,))


def step(i=0):
    scores = small(x)
    student = F.softmax(scores, dim=1)
    teacher = F.softmax(large(x), dim=1)
    distilled = F.kl_div(student, teacher, reduction="batchmean")
    loss = F.cross_entropy(scores, y) + distilled
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
