"""The positional encoding of (positions, 1, width) is added to (batch, positions, width): it numbers the samples.

Fact: batch
Line: return x + self.table[: x.shape[0]]
Steps: 2
Report: songyangco/GETNext#2, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)


class Positions(nn.Module):
    def __init__(self, width, longest=200):
        super().__init__()
        angles = torch.arange(longest)[:, None] * 10000 ** (-torch.arange(0, width, 2) / width)
        self.register_buffer("table", torch.stack((angles.sin(), angles.cos()), -1).reshape(longest, 1, width))

    def forward(self, x):
        return x + self.table[: x.shape[0]]


places, positions = nn.Embedding(60, 16), Positions(16)
encoder = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
head = nn.Linear(16, 60)
model = nn.Sequential(places, positions, encoder, head)
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
visits = torch.randint(0, 60, (20, 9))


def step(i=0):
    scores = model(visits[:, :-1])[:, -1]
    loss = nn.functional.cross_entropy(scores, visits[:, -1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
