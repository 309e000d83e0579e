"""A variational autoencoder multiplies the noise by the variance, not by its root.

Fact: exp
Line: z = mean + torch.randn_like(mean) * log_variance.exp()
Steps: 2
Report: rachtsingh/ibp_vae#3, GitHub
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(36, 40), nn.Tanh(), nn.Linear(40, 12))
decoder = nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 36))
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], 1e-3)
images = torch.rand(32, 36)


def step(i=0):
    mean, log_variance = encoder(images).chunk(2, -1)
    z = mean + torch.randn_like(mean) * log_variance.exp()
    likely = F.binary_cross_entropy_with_logits(decoder(z), images, reduction="sum") / 32
    divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum(-1).mean()
    loss = likely + divergence
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
