"""Cross-entropy by hand: log of a softmax that is exactly 0.

Fact: inf
Fact: aten.log
Line: return -torch.softmax(scores, -1).log()[torch.arange(len(labels)), labels].mean()
"""

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 5))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
inputs, labels = torch.randn(64, 16) * 100, torch.randint(0, 5, (64,))


def cross_entropy(scores, labels):
    return -torch.softmax(scores, -1).log()[torch.arange(len(labels)), labels].mean()


def step(i=0):
    loss = cross_entropy(net(inputs) * 20, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(5):
        print(i, step(i))
