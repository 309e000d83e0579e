"""The attention's dropout is a function without training=: it stays on after eval().

Fact: dropout_in_eval
Where: attention
Line: weights = F.dropout(scores.softmax(-1), self.p)
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Attention(torch.nn.Module):
    def __init__(self, width, p=0.1):
        super().__init__()
        self.qkv, self.p = torch.nn.Linear(width, 3 * width), p

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(1, 2) / x.shape[-1] ** 0.5
        weights = F.dropout(scores.softmax(-1), self.p)
        return weights @ v


class Layer(torch.nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.attention, self.norm = Attention(width), torch.nn.LayerNorm(width)

    def forward(self, x):
        return x + self.attention(self.norm(x))


net = Layer().eval()
inputs = torch.randn(4, 16, 32)


def step(i=0):
    with torch.no_grad():
        return net(inputs).sum().item()


if __name__ == "__main__":
    for i in range(3):
        print(i, step(i))
