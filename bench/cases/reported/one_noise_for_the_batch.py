"""The noise of a generator is drawn once and repeated: all samples of a batch are of the same noise.

Fact: noise
Line: noise = torch.randn(1, 8).expand(len(layouts), -1)
Steps: 2
Report: ashual/scene_generation#16, GitHub
Missed: that each row of a batch has the same random numbers is not told
"""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(5 + 8, 32), nn.ReLU(), nn.Linear(32, 16))
critic = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1)).requires_grad_(False)
optimizer = torch.optim.Adam(generator.parameters(), 1e-3, betas=(0.5, 0.999))
layouts = torch.randn(20, 5)


def step(i=0):
    noise = torch.randn(1, 8).expand(len(layouts), -1)
    masks = generator(torch.cat((layouts, noise), -1))
    loss = nn.functional.softplus(-critic(masks)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
