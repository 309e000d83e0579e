"""The critic's turn ends with the generator's optimizer: the critic is never updated.

Fact: gradients
Fact: again
Steps: 3
Report: Lornatang/ESRGAN-PyTorch#39, GitHub
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Critic(nn.Sequential):
    pass


generator = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.PixelShuffle(2))
critic = Critic(nn.Conv2d(3, 8, 4, 4), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(72, 1))
g_optimizer = torch.optim.Adam(generator.parameters(), 1e-4)
d_optimizer = torch.optim.Adam(critic.parameters(), 1e-4)
small, large = torch.rand(5, 3, 6, 6), torch.rand(5, 3, 12, 12)


def step(i=0):
    g_optimizer.zero_grad()
    larger = generator(small)
    (F.l1_loss(larger, large) + 1e-3 * F.softplus(-critic(larger)).mean()).backward()
    g_optimizer.step()
    d_optimizer.zero_grad()
    told = F.softplus(-critic(large)).mean() + F.softplus(critic(larger.detach())).mean()
    told.backward()
    g_optimizer.step()
    return told.item()


if __name__ == "__main__":
    for i in range(3):
        print(i, step(i))
