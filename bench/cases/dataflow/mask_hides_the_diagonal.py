"""The causal mask begins at the diagonal: no token sees itself, and the first sees nothing.

Fact: hidden_diagonal
Fact: hides each position from itself
Line: hidden = torch.ones(t, t, dtype=torch.bool).triu()
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Attention(torch.nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.qkv = torch.nn.Linear(width, 3 * width)

    def forward(self, x):
        t = x.shape[1]
        hidden = torch.ones(t, t, dtype=torch.bool).triu()
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(1, 2) / x.shape[-1] ** 0.5
        return scores.masked_fill(hidden, -1e9).softmax(-1) @ v


net = torch.nn.Sequential(Attention(), torch.nn.Linear(32, 5))
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
inputs, labels = torch.randn(8, 12, 32), torch.randint(0, 5, (8, 12))


def step(i=0):
    loss = F.cross_entropy(net(inputs).transpose(1, 2), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
