"""The head is replaced after the optimizer was made, which goes on to hold the old one.

Fact: head (2 tensors) get gradients but are in no optimizer
Fact: not_in_optimizer
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32))
        self.head = torch.nn.Linear(32, 1000)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


net = Net()
optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
net.head = torch.nn.Linear(32, 5)
inputs, labels = torch.randn(64, 16), torch.randint(0, 5, (64,))


def step(i=0):
    loss = F.cross_entropy(net(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(20):
        print(i, step(i))
