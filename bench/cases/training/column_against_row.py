"""The value head gives (N, 1), the returns are (N,): their difference is N x N.

Fact: unintended_broadcast
Fact: broadcasts to [128, 128]
Line: advantage = returns - values
"""

import torch

torch.manual_seed(0)
critic = torch.nn.Sequential(torch.nn.Linear(6, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
optimizer = torch.optim.Adam(critic.parameters(), 1e-3)
states = torch.randn(128, 6)
returns = states.sum(-1)


def step(i=0):
    values = critic(states)
    advantage = returns - values
    loss = advantage.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(20):
        print(i, step(i))
