"""Heads are split by reshape(b, heads, t, -1), which mixes positions, instead of view and transpose.

Fact: scrambled_view
Fact: without moving elements
Line: q, k, v = (part.reshape(b, self.heads, t, -1) for part in self.qkv(x).chunk(3, -1))
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Attention(torch.nn.Module):
    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (part.reshape(b, self.heads, t, -1) for part in self.qkv(x).chunk(3, -1))
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d))


net = torch.nn.Sequential(Attention(), torch.nn.Linear(32, 5))
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
inputs, labels = torch.randn(8, 12, 32), torch.randint(0, 5, (8, 12))


def step(i=0):
    loss = F.cross_entropy(net(inputs).flatten(0, 1), labels.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
