"""nll_loss is negated once more, as if it were a log-likelihood: training makes the right class less likely.

Fact: negated_loss
Fact: training makes nll_loss larger
Line: loss = -F.nll_loss(net(inputs), labels)
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 5), torch.nn.LogSoftmax(-1))
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
inputs, labels = torch.randn(64, 16), torch.randint(0, 5, (64,))


def step(i=0):
    loss = -F.nll_loss(net(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(20):
        print(i, step(i))
