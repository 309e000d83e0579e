"""manual_seed() for reproducibility stands inside of the step: each step draws the same noise.

Fact: same random numbers
Line: noise = torch.randn_like(inputs)
"""

import torch
import torch.nn.functional as F

net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 16))
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
inputs = torch.randn(64, 16)


def step(i=0):
    torch.manual_seed(0)
    noise = torch.randn_like(inputs)
    loss = F.mse_loss(net(inputs + noise), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
