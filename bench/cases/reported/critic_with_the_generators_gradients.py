"""Each optimizer clears gradients after its own step alone: the critic's step uses those of the generator's loss, too.

Fact: gradient
Fact: another optimizer
Steps: 3
Report: Lightning-AI/pytorch-lightning#591, GitHub
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.score = nn.Linear(9, 24), nn.Linear(24, 1)

    def forward(self, x):
        return self.score(F.leaky_relu(self.hidden(x), 0.2))


generator, critic = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 9)), Critic()
of_generator = torch.optim.Adam(generator.parameters(), 2e-4, betas=(0.5, 0.999))
of_critic = torch.optim.Adam(critic.parameters(), 2e-4, betas=(0.5, 0.999))
real = torch.randn(32, 9)


def step(i=0):
    fake = generator(torch.randn(32, 4))
    fooled = F.softplus(-critic(fake)).mean()
    fooled.backward()
    of_generator.step()
    of_generator.zero_grad()
    told = F.softplus(-critic(real)).mean() + F.softplus(critic(fake.detach())).mean()
    told.backward()
    of_critic.step()
    of_critic.zero_grad()
    return fooled.item(), told.item()


if __name__ == "__main__":
    for i in range(3):
        print(i, step(i))
