"""RMS norm in float16 squares first: values above 255 overflow.

Fact: overflow
Fact: aten.pow
Line: return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight
"""

import torch

torch.manual_seed(0)


class RMSNorm(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Block(torch.nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.norm, self.up, self.down = RMSNorm(width), torch.nn.Linear(width, 128), torch.nn.Linear(128, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.silu(self.up(self.norm(x))))


model = torch.nn.Sequential(*[Block() for _ in range(3)])
with torch.no_grad():
    model[0].down.bias[5] = 400.0  # an outlier channel, as trained models have
model = model.half().eval()


def step(i=0):
    with torch.no_grad():
        return model(torch.randn(2, 8, 64).half()).float().abs().mean().item()


if __name__ == "__main__":
    print(step())
