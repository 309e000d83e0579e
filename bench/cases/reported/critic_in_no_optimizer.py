"""The optimizer gets the parameters of the first critic twice, and none of the second, which stays random.

Fact: no optimizer
Where: periods
Steps: 2
Report: line/open-universe#5, GitHub
"""

import warnings

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
warnings.simplefilter("ignore")


class Critics(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales, self.periods = nn.Conv1d(1, 1, 9, 4), nn.Conv1d(1, 1, 5, 3)

    def forward(self, x):
        return self.scales(x).mean() + self.periods(x).mean()


critics = Critics()
optimizer = torch.optim.AdamW([*critics.scales.parameters(), *critics.scales.parameters()], 1e-4)
clean, fake = torch.randn(6, 1, 60), torch.randn(6, 1, 60)


def step(i=0):
    loss = F.relu(1 - critics(clean)) + F.relu(1 + critics(fake))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
