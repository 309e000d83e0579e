"""The warm-up divides integers: the learning rate is exactly 0 in all steps.

Fact: zero_rate
Fact: exactly 0 at all
Where: all 4 parameters of Sequential
Steps: 6
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, step // 1000))
inputs, labels = torch.randn(64, 16), torch.randint(0, 3, (64,))


def step(i=0):
    loss = F.cross_entropy(net(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(20):
        print(i, step(i))
