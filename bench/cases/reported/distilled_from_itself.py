"""Both sides of the distillation loss are the teacher's scores: the student learns from labels alone.

Fact: kl_div
Fact: gradient
Line: soft = F.kl_div(F.log_softmax(wise / 4, -1), F.softmax(wise / 4, -1), reduction="batchmean")
Steps: 2
Report: labmlai/annotated_deep_learning_paper_implementations#66, GitHub
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
large = nn.Sequential(nn.Linear(18, 96), nn.Dropout(0.1), nn.ReLU(), nn.Linear(96, 8)).eval()
small = nn.Sequential(nn.Linear(18, 12), nn.ReLU(), nn.Linear(12, 8))
optimizer = torch.optim.Adam(small.parameters(), 2e-3)
x, y = torch.randn(48, 18), torch.randint(0, 8, (48,))


def step(i=0):
    with torch.no_grad():
        wise = large(x)
    scores = small(x)
    soft = F.kl_div(F.log_softmax(wise / 4, -1), F.softmax(wise / 4, -1), reduction="batchmean")
    loss = 0.5 * F.cross_entropy(scores, y) + 0.5 * 16 * soft
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
