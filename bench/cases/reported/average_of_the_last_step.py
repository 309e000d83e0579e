"""The moving average takes 0.999 of the new weights and 0.001 of its own: it is the last step's weights, no average.

Fact: average
Fact: 0.999
Line: kept.mul_(1 - beta).add_(weight, alpha=beta)
Steps: 4
Report: marin-community/levanter#883, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(50, 16), nn.Linear(16, 50))
average = [weight.detach().clone() for weight in model.parameters()]
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
ids = torch.randint(0, 50, (4, 21))


@torch.no_grad()
def update(beta=0.999):
    for kept, weight in zip(average, model.parameters(), strict=True):
        kept.mul_(1 - beta).add_(weight, alpha=beta)


def step(i=0):
    loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    update()
    return loss.item()


if __name__ == "__main__":
    for i in range(4):
        print(i, step(i))
