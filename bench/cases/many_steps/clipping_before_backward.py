"""clip_grad_norm_ stands before backward(): it clips nothing.

Fact: early_clipping
Fact: it ran before backward()
Line: torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(net.parameters(), 1e-4)
inputs = torch.randn(64, 16) * 10
targets = inputs.sum(-1, keepdim=True)


def step(i=0):
    loss = F.mse_loss(net(inputs), targets)
    optimizer.zero_grad()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
