"""The Dice loss thresholds the prediction and makes a new tensor of it: no gradient comes back through it.

Fact: gradient
Line: hard = torch.tensor((probabilities > 0.5).float().numpy(), requires_grad=True)
Steps: 2
Report: qubvel-org/segmentation_models.pytorch#611, GitHub
Missed: a leaf that is made and dropped in a step is recorded without requires_grad, and what is computed of it, too
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 10, 3, padding=1), nn.ReLU(), nn.Conv2d(10, 1, 1))
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
scans = torch.randn(5, 1, 18, 18)
organs = (torch.rand(5, 1, 18, 18) < 0.2).float()


def dice_loss(probabilities, truth):
    hard = torch.tensor((probabilities > 0.5).float().numpy(), requires_grad=True)
    return 1 - (2 * (hard * truth).sum() + 1) / (hard.sum() + truth.sum() + 1)


def step(i=0):
    scores = net(scans)
    loss = F.binary_cross_entropy_with_logits(scores, organs) + dice_loss(scores.sigmoid(), organs)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
