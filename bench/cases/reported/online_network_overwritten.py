"""The soft update loads the mix into the network that is trained; the target stays as it began.

Fact: target
Line: online.load_state_dict(mixed)
Steps: 4
Report: reinshift/MADDPG_Multi_UAV_Roundup#10, GitHub
Missed: what writes into trained parameters beside the optimizer is told for random numbers alone
"""

import copy

import torch
from torch import nn

torch.manual_seed(0)
online = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 4))
target = copy.deepcopy(online).requires_grad_(False)
optimizer = torch.optim.Adam(online.parameters(), 1e-3)
before, after = torch.randn(64, 6), torch.randn(64, 6)
actions, rewards, going = torch.randint(0, 4, (64, 1)), torch.randn(64), torch.randint(0, 2, (64,)).float()


def soft_update(tau=0.01):
    ours, theirs = online.state_dict(), target.state_dict()
    mixed = {name: tau * ours[name] + (1 - tau) * theirs[name] for name in ours}
    online.load_state_dict(mixed)


def step(i=0):
    with torch.no_grad():
        wanted = rewards + 0.95 * going * target(after).amax(1)
    loss = nn.functional.smooth_l1_loss(online(before).gather(1, actions).squeeze(1), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    soft_update()
    return loss.item()


if __name__ == "__main__":
    for i in range(4):
        print(i, step(i))
