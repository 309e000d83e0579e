"""The padding mask is added by the model and again by each layer.

Fact: mask
Fact: twice
Where: attention
Line: scores = scores + bias
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Attention(torch.nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.qkv = torch.nn.Linear(width, 3 * width)

    def forward(self, x, bias):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(1, 2) / x.shape[-1] ** 0.5 + bias
        scores = scores + bias
        return scores.softmax(-1) @ v


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.head = Attention(), torch.nn.Linear(32, 5)

    def forward(self, x, is_token):
        bias = (1 - is_token.float())[:, None, :] * torch.finfo(torch.float32).min
        return self.head(x + self.attention(x, bias))


net = Net()
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
inputs, labels = torch.randn(8, 12, 32), torch.randint(0, 5, (8, 12))
is_token = torch.arange(12) < torch.randint(4, 12, (8, 1))


def step(i=0):
    loss = F.cross_entropy(net(inputs, is_token).transpose(1, 2), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
