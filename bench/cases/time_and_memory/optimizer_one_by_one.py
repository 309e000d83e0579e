"""foreach=False lets AdamW run a dozen ops for each of many small parameters.

Fact: optimizer
Fact: one parameter at a time
Fact: fused=True
"""

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(*[torch.nn.Linear(16, 16) for _ in range(24)])
optimizer = torch.optim.AdamW(net.parameters(), 1e-3, foreach=False)
inputs = torch.randn(8, 16)


def step(i=0):
    loss = net(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(5):
        print(i, step(i))
