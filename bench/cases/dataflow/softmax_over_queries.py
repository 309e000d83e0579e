"""Attention weights sum to 1 over the queries, not over the keys.

Fact: softmax
Fact: dim
Line: weights = F.softmax(scores, dim=1)
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Attention(torch.nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.q, self.k, self.v = (torch.nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        scores = self.q(x) @ self.k(x).transpose(1, 2) / x.shape[-1] ** 0.5
        weights = F.softmax(scores, dim=1)
        return weights @ self.v(x)


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
