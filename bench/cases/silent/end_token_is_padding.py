"""The token that ends a text is also the padding, and labels are ignored where it stands.

Fact: No target of token 2 counts
Fact: never learns to give it
Steps: 2
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
WORDS, END = 64, 2
net = nn.Sequential(nn.Embedding(WORDS, 16), nn.Linear(16, WORDS))
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
texts = [torch.randint(3, WORDS, (length,)) for length in (5, 8, 11, 12)]
batch = torch.full((4, 13), END)
for row, text in zip(batch, texts, strict=True):
    row[: len(text)] = text


def step(i=0):
    labels = batch.masked_fill(batch == END, -100)
    logits = net(batch)
    loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
