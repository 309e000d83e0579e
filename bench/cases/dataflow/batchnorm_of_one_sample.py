"""BatchNorm trains on batches of one image.

Fact: lone_sample
Fact: batch of one sample
Where: in module 1,
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 8, stride=8),
    torch.nn.BatchNorm2d(16),
    torch.nn.ReLU(),
    torch.nn.Flatten(),
    torch.nn.Linear(64, 3),
)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
images, labels = torch.randn(16, 3, 16, 16), torch.randint(0, 3, (16,))


def step(i=0):
    loss = F.cross_entropy(net(images[i % 16 : i % 16 + 1]), labels[i % 16 : i % 16 + 1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
