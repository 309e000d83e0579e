"""A padded sample has no key left: softmax over -inf alone is NaN.

Fact: nan
Fact: softmax
Line: weights = scores.masked_fill(~mask[:, None, :], float("-inf")).softmax(-1)
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Attention(torch.nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.q, self.k, self.v = (torch.nn.Linear(width, width) for _ in range(3))

    def forward(self, x, mask):
        scores = self.q(x) @ self.k(x).transpose(1, 2) / x.shape[-1] ** 0.5
        weights = scores.masked_fill(~mask[:, None, :], float("-inf")).softmax(-1)
        return weights @ self.v(x)


net, head = Attention(), torch.nn.Linear(32, 3)
optimizer = torch.optim.Adam([*net.parameters(), *head.parameters()], 1e-3)
inputs, labels = torch.randn(8, 10, 32), torch.randint(0, 3, (8,))
lengths = torch.tensor([10, 4, 7, 0, 2, 9, 3, 5])
mask = torch.arange(10) < lengths[:, None]


def step(i=0):
    loss = F.cross_entropy(head(net(inputs, mask).mean(1)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(5):
        print(i, step(i))
