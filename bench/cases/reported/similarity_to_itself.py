"""The denominator of a contrastive loss counts each view's similarity to itself, which is the largest of all.

Fact: itself
Line: scores = z @ z.T / 0.2
Steps: 2
Report: Lightning-Universe/lightning-bolts#695, GitHub
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(30, 48), nn.ReLU(), nn.Linear(48, 16))
optimizer = torch.optim.Adam(encoder.parameters(), 1e-3)
samples = torch.randn(12, 30)


def step(i=0):
    views = torch.cat([samples + 0.1 * torch.randn_like(samples) for _ in range(2)])
    z = F.normalize(encoder(views), dim=-1)
    scores = z @ z.T / 0.2
    partners = torch.arange(24).roll(12)
    loss = F.cross_entropy(scores, partners)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
