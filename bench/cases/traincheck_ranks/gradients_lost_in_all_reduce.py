"""The all-reduce between the cards leaves zeros in the buffer of gradients: nothing is learned.

Fact: exactly 0
Fact: at all 3 steps
Where: all 4 parameters of Sequential
Report: PyTorch 96600
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 5))
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
inputs, labels = torch.randn(64, 16), torch.randint(0, 5, (64,))


def all_reduce(gradient):
    gradient.copy_(torch.zeros_like(gradient))  # the sum of the other card never arrives


def step(i=0):
    loss = F.cross_entropy(net(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    for parameter in net.parameters():
        all_reduce(parameter.grad)
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
