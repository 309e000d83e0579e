"""The initialization overwrites the row of the padding, which is summed with the others and never trained.

Fact: padding
Where: items
Steps: 2
Report: pytorch/pytorch#6495, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.items, self.head = nn.Embedding(90, 12, padding_idx=0), nn.Linear(12, 90)
        nn.init.normal_(self.items.weight, std=0.1)

    def forward(self, history):
        return self.head(self.items(history).sum(1))


model = Recommender()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
histories, bought = torch.randint(1, 90, (16, 10)), torch.randint(1, 90, (16,))
histories[torch.arange(10) >= torch.randint(2, 10, (16, 1))] = 0


def step(i=0):
    loss = nn.functional.cross_entropy(model(histories), bought)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
