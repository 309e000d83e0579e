"""The fused attention gets the dropout rate whether the model trains or not.

Fact: dropout_in_eval
Where: of attention in eval mode
Line: return F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)[:, 0]
Report: Transformers 33844
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class FlashAttention(torch.nn.Module):
    def __init__(self, width=32, dropout=0.1):
        super().__init__()
        self.qkv, self.dropout = torch.nn.Linear(width, 3 * width), dropout

    def forward(self, x):
        q, k, v = self.qkv(x)[:, None].chunk(3, -1)
        return F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)[:, 0]


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.out = FlashAttention(), torch.nn.Linear(32, 32)

    def forward(self, x):
        return x + self.out(self.attention(x))


net = Layer().eval()
inputs = torch.randn(4, 16, 32)


def step(i=0):
    with torch.no_grad():
        return net(inputs).sum().item()


if __name__ == "__main__":
    for i in range(3):
        print(i, step(i))
