"""A stale compiled graph leaves gradients at None after the first steps: the body no longer moves.

Fact: none at the 3 that follow
Where: body
Steps: 5
Report: PyTorch 115607
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head, self.calls = torch.nn.Linear(16, 32), torch.nn.Linear(32, 5), 0

    def forward(self, x):
        self.calls += 1
        hidden = torch.relu(self.body(x))
        if self.calls > 2:  # the guard that was to notice that the graph is of a frozen phase
            hidden = hidden.detach()
        return self.head(hidden)


net = Net()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
inputs, labels = torch.randn(64, 16), torch.randint(0, 5, (64,))


def step(i=0):
    loss = F.cross_entropy(net(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
