"""Hidden values are scaled by .data before the backward pass that needs them as they were.

Fact: changes in place what
Fact: gradients are those of another function
Steps: 2
"""

import torch
from torch import nn

torch.manual_seed(0)
first, second = nn.Linear(8, 16), nn.Linear(16, 3)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], 0.1)
x, y = torch.randn(32, 8), torch.randint(0, 3, (32,))


def step(i=0):
    hidden = first(x).tanh()
    loss = nn.functional.cross_entropy(second(hidden), y)
    hidden.data.div_(hidden.norm())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
