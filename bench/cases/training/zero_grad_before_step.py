"""zero_grad() stands between backward() and step(), so that the optimizer never sees a gradient.

Fact: cleared_gradient
Fact: gone before the optimizer steps
Where: all 4 parameters of Sequential
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 5))
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
inputs, labels = torch.randn(64, 16), torch.randint(0, 5, (64,))


def step(i=0):
    loss = F.cross_entropy(net(inputs), labels)
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(20):
        print(i, step(i))
