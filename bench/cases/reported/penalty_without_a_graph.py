"""autograd.grad() runs without create_graph=True: the gradient penalty is a number, and the critic feels none of it.

Fact: create_graph
Fact: gradient
Line: slopes = torch.autograd.grad(critic(mixed).sum(), mixed)[0]
Steps: 2
Report: ooples/AiDotNet#1844, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(10, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
generator = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.Adam(critic.parameters(), 1e-4, betas=(0.5, 0.9))
real = torch.randn(24, 10)


def step(i=0):
    with torch.no_grad():
        fake = generator(torch.randn(24, 6))
    share = torch.rand(24, 1)
    mixed = (share * real + (1 - share) * fake).requires_grad_()
    slopes = torch.autograd.grad(critic(mixed).sum(), mixed)[0]
    penalty = 10 * ((slopes.norm(2, dim=-1) - 1) ** 2).mean()
    loss = critic(fake).mean() - critic(real).mean() + penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
