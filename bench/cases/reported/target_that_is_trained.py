"""The target of Q-learning is computed by the network that learns, without detach(): it is pulled to the guess, too.

Fact: target
Fact: gradient
Line: loss = F.mse_loss(guesses, wanted)
Steps: 2
Report: datawhalechina/easy-rl#117, GitHub
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(network.parameters(), 1e-3)
before, after, rewards = torch.randn(64, 4), torch.randn(64, 4), torch.rand(64)
actions, done = torch.randint(0, 2, (64, 1)), torch.randint(0, 2, (64,)).float()


def step(i=0):
    guesses = network(before).gather(1, actions).squeeze(1)
    following = network(after).max(1).values
    wanted = rewards + 0.98 * following * (1 - done)
    loss = F.mse_loss(guesses, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
