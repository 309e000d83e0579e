"""detach() gives a new tensor, and the line drops it: the target of Q-learning still has its gradient.

Fact: detach
Line: following.detach()
Steps: 2
Report: oreilly-japan/deep-learning-from-scratch-4#13, GitHub
"""

import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2))
target = copy.deepcopy(network)
optimizer = torch.optim.Adam(network.parameters(), 1e-3)
before, after, rewards, actions = torch.randn(32, 4), torch.randn(32, 4), torch.rand(32), torch.randint(0, 2, (32,))


def step(i=0):
    guesses = network(before)[torch.arange(32), actions]
    following = target(after).max(1).values
    following.detach()
    loss = F.mse_loss(guesses, rewards + 0.98 * following)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
