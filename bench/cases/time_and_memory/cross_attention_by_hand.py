"""Cross-attention writes its scores out, with a bias added, instead of scaled_dot_product_attention.

Fact: attention
Fact: scaled_dot_product_attention
Where: cross
"""

import torch

torch.manual_seed(0)


class CrossAttention(torch.nn.Module):
    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads = heads
        self.q, self.kv = torch.nn.Linear(width, width), torch.nn.Linear(width, 2 * width)

    def forward(self, x, memory, bias):
        b, t, d = x.shape
        q = self.q(x).view(b, t, self.heads, -1).transpose(1, 2)
        k, v = self.kv(memory).view(b, memory.shape[1], 2, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = torch.matmul(q, k.transpose(-2, -1)) * (d // self.heads) ** -0.5 + bias
        return torch.matmul(torch.softmax(scores, -1), v).transpose(1, 2).reshape(b, t, d)


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cross = CrossAttention()
        self.out = torch.nn.Linear(64, 8)

    def forward(self, x, memory, bias):
        return self.out(x + self.cross(x, memory, bias))


net = Decoder()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
inputs, memory, bias = torch.randn(4, 256, 64), torch.randn(4, 384, 64), torch.zeros(256, 384)


def step(i=0):
    loss = net(inputs, memory, bias).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    print(step())
