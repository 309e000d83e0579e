"""An encoder copies its one layer with its weights, so that all four layers start alike.

Fact: equal
Where: layers.1
Steps: 2
Report: pytorch/pytorch#72253, GitHub
Missed: parted_copy compares embedding and head, or two models, not layers of one model
"""

import torch
from torch import nn

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(80, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 4)
        self.head = nn.Linear(16, 7)

    def forward(self, ids):
        return self.head(self.encoder(self.words(ids)))


model = Tagger()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
ids, tags = torch.randint(0, 80, (8, 12)), torch.randint(0, 7, (8, 12))


def step(i=0):
    loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), tags.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
