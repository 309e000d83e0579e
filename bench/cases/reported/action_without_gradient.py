"""The actor's action is drawn by sample(), not rsample(): the critic's judgement never reaches its mean.

Fact: no gradient
Where: mean
Steps: 2
Report: jankrepl/deepdow#106, GitHub
"""

import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.log_std = nn.Linear(10, 3), nn.Linear(10, 3)

    def forward(self, states):
        return Normal(self.mean(states), self.log_std(states).clamp(-5, 2).exp())


actor = Actor()
critic = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 1)).requires_grad_(False)
optimizer = torch.optim.Adam(actor.parameters(), 3e-4)
states = torch.randn(64, 10)


def step(i=0):
    policy = actor(states)
    actions = policy.sample()
    value = critic(torch.cat((states, actions), -1)).mean()
    loss = -value - 0.01 * policy.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
