"""A layer was initialized with a bias of -5: after ReLU nothing is left of it.

Fact: exactly 0
Where: hidden
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Linear(16, 32)
        self.hidden = torch.nn.Linear(32, 32)
        self.head = torch.nn.Linear(32, 3)
        torch.nn.init.constant_(self.hidden.bias, -5.0)

    def forward(self, x):
        return self.head(torch.relu(self.hidden(torch.relu(self.stem(x)))))


net = Net()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
inputs, labels = torch.randn(64, 16), torch.randint(0, 3, (64,))


def step(i=0):
    loss = F.cross_entropy(net(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
