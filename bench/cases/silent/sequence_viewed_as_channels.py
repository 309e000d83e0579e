"""Features are brought in front of positions by reshape, for a convolution over time.

Fact: without moving elements
Fact: a transpose would swap them
Steps: 2
"""

import torch
from torch import nn

torch.manual_seed(0)
features, over_time, head = nn.Linear(6, 20), nn.Conv1d(20, 8, 3), nn.Linear(8, 2)
optimizer = torch.optim.AdamW([*features.parameters(), *over_time.parameters(), *head.parameters()], 1e-3)
series, classes = torch.randn(8, 33, 6), torch.randint(0, 2, (8,))


def step(i=0):
    hidden = features(series).relu()
    hidden = hidden.reshape(8, 20, 33)
    loss = nn.functional.cross_entropy(head(over_time(hidden).mean(-1)), classes)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
