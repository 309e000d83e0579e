"""The last output of a bidirectional LSTM is taken: its reverse half has seen the last input alone.

Fact: direction
Line: last = states[:, -1]
Steps: 2
Report: yunjey/pytorch-tutorial#149, GitHub
Missed: the parameter and why are told, and not the line that reads the last position
"""

import torch
from torch import nn

torch.manual_seed(0)


class RowReader(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(28, 24, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(48, 10)

    def forward(self, rows):
        states, _ = self.lstm(rows)
        last = states[:, -1]
        return self.head(last)


model = RowReader()
optimizer = torch.optim.Adam(model.parameters(), 3e-3)
images, digits = torch.rand(16, 28, 28), torch.randint(0, 10, (16,))


def step(i=0):
    loss = nn.functional.cross_entropy(model(images), digits)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
