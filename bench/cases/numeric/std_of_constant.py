"""The root of the variance of a constant feature is 0, and its gradient is NaN; the loss is finite.

Fact: nan
Fact: inputs there: 0, 0
Where: in module 1,
Line: return (x - x.mean(0)) / (x.var(0).sqrt() + 1e-5)
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Standardise(torch.nn.Module):
    def forward(self, x):
        return (x - x.mean(0)) / (x.var(0).sqrt() + 1e-5)


net = torch.nn.Sequential(torch.nn.Linear(8, 16), Standardise(), torch.nn.ReLU(), torch.nn.Linear(16, 3))
with torch.no_grad():
    net[0].weight[3] = 0.0  # one unit is always the same
optimizer = torch.optim.SGD(net.parameters(), 0.1)
inputs, labels = torch.randn(64, 8), torch.randint(0, 3, (64,))


def step(i=0):
    loss = F.cross_entropy(net(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(5):
        print(i, step(i))
