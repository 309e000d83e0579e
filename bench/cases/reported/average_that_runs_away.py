"""The moving average adds its gap to the weights where it must subtract it: each update takes it further away.

Fact: average
Fact: away
Line: kept.add_(gap * 0.1)
Steps: 6
Report: ostris/ai-toolkit#1034, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(12, 32), nn.SiLU(), nn.Linear(32, 12))
average = [weight.detach().clone() for weight in net.parameters()]
optimizer = torch.optim.AdamW(net.parameters(), 1e-2)
clean = torch.randn(40, 12)


def update():
    with torch.no_grad():
        for kept, weight in zip(average, net.parameters(), strict=True):
            gap = kept - weight
            kept.add_(gap * 0.1)


def step(i=0):
    noise = torch.randn_like(clean)
    loss = (net(clean + noise) - noise).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    update()
    return loss.item()


if __name__ == "__main__":
    for i in range(6):
        print(i, step(i))
