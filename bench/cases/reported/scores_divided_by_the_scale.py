"""The scale is 1 / sqrt(d), and the scores are divided by it: they become d times as large as they were to be.

Fact: scores
Fact: sqrt
Line: scores = q @ k.transpose(-2, -1) / self.scale
Steps: 2
Report: esceptico/perceiver-io#9, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)


class Attention(nn.Module):
    def __init__(self, width=32, heads=2):
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / self.scale
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


attention, head = Attention(), nn.Linear(32, 4)
optimizer = torch.optim.AdamW([*attention.parameters(), *head.parameters()], 1e-3)
latents, labels = torch.randn(6, 9, 32), torch.randint(0, 4, (6,))


def step(i=0):
    loss = nn.functional.cross_entropy(head(attention(latents).mean(1)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
