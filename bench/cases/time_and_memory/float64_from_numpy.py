"""A numpy table is float64, and the first layer was made so, too, to fit it.

Fact: float64
Line: hidden = torch.relu(self.first(x))
"""

import numpy as np
import torch

torch.manual_seed(0)


class Regressor(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(64, 512).double()
        self.second = torch.nn.Linear(512, 256)
        self.third = torch.nn.Linear(256, 1)

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        return self.third(torch.relu(self.second(hidden.float())))


net = Regressor()
optimizer = torch.optim.SGD(net.parameters(), 0.01)
table = np.random.default_rng(0).normal(size=(512, 64))
targets = table.sum(1, keepdims=True)


def step(i=0):
    loss = (net(torch.from_numpy(table)) - torch.from_numpy(targets)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
