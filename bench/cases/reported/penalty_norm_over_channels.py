"""The gradient penalty takes the norm over channels, so that it holds each pixel at 1, not each image.

Fact: norm
Fact: dim
Line: penalty = ((slopes.norm(2, dim=1) - 1) ** 2).mean()
Steps: 2
Report: Zeleni9/pytorch-wgan#40, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Conv2d(3, 8, 4, 2), nn.LeakyReLU(0.2), nn.Conv2d(8, 8, 4, 2), nn.Flatten(), nn.LazyLinear(1))
generator = nn.Sequential(nn.Linear(10, 3 * 16 * 16), nn.Tanh(), nn.Unflatten(1, (3, 16, 16)))
critic(torch.zeros(1, 3, 16, 16))
optimizer = torch.optim.Adam(critic.parameters(), 1e-4, betas=(0.0, 0.9))
real = torch.randn(12, 3, 16, 16).clamp(-1, 1)


def step(i=0):
    with torch.no_grad():
        fake = generator(torch.randn(12, 10))
    share = torch.rand(12, 1, 1, 1)
    mixed = (share * real + (1 - share) * fake).requires_grad_()
    slopes = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)[0]
    penalty = ((slopes.norm(2, dim=1) - 1) ** 2).mean()
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
