"""Ten layers with sigmoid: the gradient vanishes on its way to the first.

Fact: vanishing_gradient
Fact: 10 Linear layers
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
parts = [part for _ in range(10) for part in (torch.nn.Linear(24, 24), torch.nn.Sigmoid())]
net = torch.nn.Sequential(*parts, torch.nn.Linear(24, 3))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
inputs, labels = torch.randn(64, 24), torch.randint(0, 3, (64,))


def step(i=0):
    loss = F.cross_entropy(net(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(20):
        print(i, step(i))
