"""A mask of zeros and ones is inverted as integers, and hides nothing.

Fact: `~` inverts the bits of int64
Fact: both are true
Steps: 2
"""

import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)
head = nn.Linear(16, 3)
optimizer = torch.optim.AdamW([*encoder.parameters(), *head.parameters()], 1e-3)
tokens, kept = torch.randn(4, 10, 16), torch.tensor([[1] * 6 + [0] * 4, [1] * 10, [1] * 3 + [0] * 7, [1] * 9 + [0]])
classes = torch.tensor([0, 1, 2, 0])


def step(i=0):
    hidden = encoder(tokens)
    hidden = hidden.masked_fill((~kept).bool().unsqueeze(-1), 0.0)
    loss = nn.functional.cross_entropy(head(hidden.sum(1) / kept.sum(1, keepdim=True)), classes)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
