"""A gate multiplies the first half of the residual stream in place: the skip connection carries it, too.

Fact: overwritten_view
Fact: in place
Line: first.mul_(self.gate)
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Mixer(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.out = torch.nn.Linear(width, width)
        self.register_buffer("gate", torch.full((width // 2,), 0.5))

    def forward(self, x):
        half = x.shape[-1] // 2
        first, second = x[..., :half], x[..., half:]
        first.mul_(self.gate)
        return self.out(torch.cat((second, first), -1))


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.mixer = torch.nn.Linear(width, width), Mixer(width)

    def forward(self, x):
        x = self.up(x) * 1.0
        return x + self.mixer(x)


net = torch.nn.Sequential(Block(32), Block(32), torch.nn.Linear(32, 3))
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
inputs, labels = torch.randn(64, 32), torch.randint(0, 3, (64,))


def step(i=0):
    loss = F.cross_entropy(net(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
