"""A hook for a plot keeps each activation of each step, with its graph.

Fact: kept_graph
Fact: relu
Where: in activation
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.activation = torch.nn.Linear(64, 256), torch.nn.ReLU()
        self.second = torch.nn.Linear(256, 10)

    def forward(self, x):
        return self.second(self.activation(self.first(x)))


net = Net()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
inputs, labels = torch.randn(256, 64), torch.randint(0, 10, (256,))
kept = []


def keep(module, arguments, output):
    kept.append(output)


net.activation.register_forward_hook(keep)


def step(i=0):
    loss = F.cross_entropy(net(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
