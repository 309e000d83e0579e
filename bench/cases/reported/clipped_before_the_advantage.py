"""The smaller of the ratio and the clipped ratio is taken before it meets the advantage: the lower bound does nothing.

Fact: clamp
Fact: minimum
Line: surrogate = torch.min(ratio, ratio.clamp(0.8, 1.2)) * advantages
Steps: 2
Report: takuseno/ppo#3, GitHub
"""

import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 2))
spread = nn.Parameter(torch.zeros(2))
optimizer = torch.optim.Adam([*policy.parameters(), spread], 1e-3)
states, advantages = torch.randn(48, 5), torch.randn(48)
with torch.no_grad():
    actions = Normal(policy(states), spread.exp()).sample()
    before = Normal(policy(states), spread.exp()).log_prob(actions).sum(-1)


def step(i=0):
    likelihood = Normal(policy(states), spread.exp()).log_prob(actions).sum(-1)
    ratio = (likelihood - before).exp()
    surrogate = torch.min(ratio, ratio.clamp(0.8, 1.2)) * advantages
    loss = -surrogate.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
