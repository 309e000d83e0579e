"""A sentence is the mean over all its positions, padding with them, though the mask is at hand.

Fact: padd
Line: pooled = hidden.mean(1)
Steps: 2
Report: autoliuweijie/BERT-whitening-pytorch#13, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)


class Sentences(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(200, 16, padding_idx=0)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)

    def forward(self, ids):
        hidden = self.layer(self.words(ids), src_key_padding_mask=ids == 0)
        pooled = hidden.mean(1)
        return nn.functional.normalize(pooled, dim=-1)


model = Sentences()
optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
ids = torch.randint(1, 200, (2, 12, 20))
ids[torch.arange(20) >= torch.randint(4, 20, (2, 12, 1))] = 0


def step(i=0):
    left, right = model(ids[0]), model(ids[1])
    loss = nn.functional.cross_entropy(left @ right.T / 0.1, torch.arange(12))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
