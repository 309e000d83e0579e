"""The two detach() of a vector quantizer are exchanged: the weight of the commitment holds for the codebook.

Fact: detach
Line: loss = F.mse_loss(decoder(passed), x) + F.mse_loss(chosen.detach(), z) + 0.25 * F.mse_loss(chosen, z.detach())
Steps: 2
Report: MishaLaskin/vqvae#20, GitHub
Missed: which of two terms the weight belongs to is a choice that no value shows
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 6)), nn.Linear(6, 20)
codebook = nn.Embedding(16, 6)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), *codebook.parameters()], 1e-3)
data = torch.randn(64, 20)


def step(i=0):
    x = data[torch.randperm(64)[:32]]
    z = encoder(x)
    chosen = codebook(torch.cdist(z, codebook.weight).argmin(-1))
    passed = z + (chosen - z).detach()
    loss = F.mse_loss(decoder(passed), x) + F.mse_loss(chosen.detach(), z) + 0.25 * F.mse_loss(chosen, z.detach())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
