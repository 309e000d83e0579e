"""The target adds the value of the next state also where the episode is over: "done" is drawn and never used.

Fact: done
Line: wanted = rewards + 0.99 * target(after).amax(1)
Steps: 3
Report: navneet-nmk/pytorch-rl#2, GitHub
Missed: data that a step draws and no op reads are not told
"""

import copy

import torch
from torch import nn

torch.manual_seed(0)
online = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 3))
target = copy.deepcopy(online).requires_grad_(False)
optimizer = torch.optim.Adam(online.parameters(), 1e-3)
memory = {
    "before": torch.randn(500, 5),
    "action": torch.randint(0, 3, (500,)),
    "reward": torch.randn(500),
    "after": torch.randn(500, 5),
    "done": torch.rand(500) < 0.1,
}


def step(i=0):
    drawn = torch.randint(0, 500, (64,))
    before, actions, rewards, after, _done = (memory[name][drawn] for name in memory)
    with torch.no_grad():
        wanted = rewards + 0.99 * target(after).amax(1)
    values = online(before).gather(1, actions[:, None]).squeeze(1)
    loss = nn.functional.smooth_l1_loss(values, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(3):
        print(i, step(i))
