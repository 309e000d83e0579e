"""ReduceLROnPlateau waits for the accuracy to fall (mode "min"), and cuts the rate while it rises.

Fact: ReduceLROnPlateau
Fact: learning rate
Line: schedule.step(accuracy)
Steps: 10
Report: md-mohaiminul/ViS4mer#4, GitHub
Missed: what a scheduler is given, and that the rate falls while it gets better, is not recorded
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 4))
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.2)
x = torch.randn(160, 12)
y = x[:, :4].argmax(-1)


def step(i=0):
    loss = nn.functional.cross_entropy(model(x[:128]), y[:128])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        accuracy = (model(x[128:]).argmax(-1) == y[128:]).float().mean().item()
    schedule.step(accuracy)
    return loss.item(), accuracy, optimizer.param_groups[0]["lr"]


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
