"""The scale of attention multiplies the weights behind the softmax, not the scores in front of it.

Fact: softmax
Fact: scale
Line: weights = F.softmax(energy, dim=-1) * self.scaling
Steps: 2
Report: FrancescoSaverioZuppichini/ViT#2, GitHub
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Attention(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.scaling, self.qkv, self.out = width**-0.5, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        energy = torch.einsum("bqd, bkd -> bqk", q, k)
        weights = F.softmax(energy, dim=-1) * self.scaling
        return x + self.out(torch.einsum("bqk, bkd -> bqd", weights, v))


patches, attention, head = nn.Linear(48, 24), Attention(), nn.Linear(24, 5)
optimizer = torch.optim.AdamW([*patches.parameters(), *attention.parameters(), *head.parameters()], 1e-3)
images, labels = torch.randn(8, 16, 48), torch.randint(0, 5, (8,))


def step(i=0):
    loss = F.cross_entropy(head(attention(patches(images)).mean(1)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
