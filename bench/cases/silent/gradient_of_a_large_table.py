"""A table of 200,000 users gets a dense gradient at each step, for 32 of them.

Fact: rows are not 0
Fact: reads and writes all of them
Steps: 2
"""

import torch
from torch import nn

torch.manual_seed(0)
users, items, score = nn.Embedding(200_000, 8), nn.Linear(12, 8), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*users.parameters(), *items.parameters(), *score.parameters()], 1e-3)
who, what, liked = torch.randint(0, 200_000, (32,)), torch.randn(32, 12), torch.randint(0, 2, (32, 1)).float()


def step(i=0):
    loss = nn.functional.binary_cross_entropy_with_logits(score(users(who) * items(what)), liked)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
