"""Advantages are to be standardized, and a parenthesis is missing: the mean alone is divided by the deviation.

Fact: mean
Fact: std
Line: advantages = advantages - advantages.mean() / (advantages.std() + 1e-5)
Steps: 2
Report: Omegastick/pytorch-cpp-rl#14, GitHub
"""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
policy, value = (nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, size)) for size in (4, 1))
optimizer = torch.optim.Adam([*policy.parameters(), *value.parameters()], 3e-4)
states, returns = torch.randn(40, 6), 5 + torch.randn(40)
with torch.no_grad():
    actions = Categorical(logits=policy(states)).sample()
    before = Categorical(logits=policy(states)).log_prob(actions)


def step(i=0):
    values = value(states).squeeze(-1)
    advantages = returns - values.detach()
    advantages = advantages - advantages.mean() / (advantages.std() + 1e-5)
    ratio = (Categorical(logits=policy(states)).log_prob(actions) - before).exp()
    surrogate = torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
    loss = 0.5 * (returns - values).square().mean() - surrogate.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
