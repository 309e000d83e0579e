"""Also in the generator's turn the fake is detached before the critic: only the other loss trains the generator.

Fact: detach
Fact: gradient
Line: fooled = critic(fake.detach())
Steps: 2
Report: nikhilsinghmus/image2reverb#37, GitHub
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 24))
critic = nn.Sequential(nn.Linear(24, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1))
for_generator = torch.optim.Adam(generator.parameters(), 2e-4, betas=(0.5, 0.9))
for_critic = torch.optim.Adam(critic.parameters(), 2e-4, betas=(0.5, 0.9))
features, real = torch.randn(20, 16), torch.randn(20, 24)


def step(i=0):
    fake = generator(features)
    fooled = critic(fake.detach())
    loss = F.mse_loss(fooled, torch.ones_like(fooled)) + 10 * F.l1_loss(fake, real)
    for_generator.zero_grad()
    loss.backward()
    for_generator.step()
    judged, true = critic(fake.detach()), critic(real)
    critic_loss = F.mse_loss(judged, torch.zeros_like(judged)) + F.mse_loss(true, torch.ones_like(true))
    for_critic.zero_grad()
    critic_loss.backward()
    for_critic.step()
    return loss.item(), critic_loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
