"""The loss of each position is masked by the lengths, and its mean counts the padding.

Fact: the mean divides by all
Fact: mul has set to 0
Steps: 2
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 8))
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
series, lengths = torch.randn(6, 20, 8), torch.tensor([20, 4, 7, 3, 12, 5])


def step(i=0):
    predicted = net(series[:, :-1])
    mask = torch.arange(19)[None, :] < (lengths - 1)[:, None]
    error = F.smooth_l1_loss(predicted, series[:, 1:], reduction="none")
    loss = (error * mask.unsqueeze(-1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
