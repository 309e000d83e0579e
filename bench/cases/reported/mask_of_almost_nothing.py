"""Masked scores are filled with -1e-9 where -1e9 was meant, which hides nothing.

Fact: masked_fill
Fact: hides
Line: scores = scores.masked_fill(padding[:, None, :], -1e-9)
Steps: 2
Report: Shujun-He/RibonanzaNet#5, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(24, 72), nn.Linear(24, 24)

    def forward(self, x, padding):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.mT * 24**-0.5
        scores = scores.masked_fill(padding[:, None, :], -1e-9)
        return x + self.out(scores.softmax(-1) @ v)


embed, attention, head = nn.Embedding(6, 24, padding_idx=0), Attention(), nn.Linear(24, 2)
optimizer = torch.optim.AdamW([*embed.parameters(), *attention.parameters(), *head.parameters()], 1e-3)
bases, lengths = torch.randint(1, 6, (5, 30)), torch.tensor([30, 12, 21, 9, 25])
padding = torch.arange(30)[None] >= lengths[:, None]
bases[padding] = 0
reactivity = torch.rand(5, 30, 2)


def step(i=0):
    predicted = head(attention(embed(bases), padding))
    loss = (predicted - reactivity)[~padding].abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
