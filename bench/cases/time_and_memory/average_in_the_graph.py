"""The moving average of the weights is computed with autograd: its graph grows by a level per step.

Fact: kept_graph
Fact: memory grows with each step
Line: average[name] = 0.99 * average[name] + 0.01 * parameter
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
average = {name: parameter.clone() for name, parameter in net.named_parameters()}
inputs, labels = torch.randn(64, 64), torch.randint(0, 10, (64,))


def step(i=0):
    loss = F.cross_entropy(net(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for name, parameter in net.named_parameters():
        average[name] = 0.99 * average[name] + 0.01 * parameter
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
