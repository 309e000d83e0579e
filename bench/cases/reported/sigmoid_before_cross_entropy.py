"""A classifier of five classes ends with a sigmoid in front of cross_entropy: no class can become sure.

Fact: sigmoid
Line: loss = nn.functional.cross_entropy(model(values), labels)
Steps: 2
Report: opendataval/opendataval#25, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)


class LogisticRegression(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(14, 5)

    def forward(self, x):
        return torch.sigmoid(self.linear(x))


model = LogisticRegression()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
values, labels = torch.randn(50, 14), torch.randint(0, 5, (50,))


def step(i=0):
    loss = nn.functional.cross_entropy(model(values), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
