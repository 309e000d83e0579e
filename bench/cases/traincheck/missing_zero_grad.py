"""The training loop never calls zero_grad(): with Adam it trains, and gets worse with time.

Fact: accumulated_gradient
Fact: those of the step before
Where: Sequential
Report: Stack Overflow 60335387
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(144, 10)
)
optimizer = torch.optim.Adam(net.parameters(), 1e-4)
images, labels = torch.randn(32, 1, 14, 14), torch.randint(0, 10, (32,))


def step(i=0):
    loss = F.cross_entropy(net(images), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
