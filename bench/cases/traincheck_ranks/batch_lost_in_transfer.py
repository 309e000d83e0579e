"""The copy to the second device delivers zeros: the model trains on nothing but its biases.

Fact: what goes into it is 0
Fact: at all 3 steps
Where: first.weight
Report: PyTorch 84803
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(16, 64), torch.nn.Linear(64, 5)

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


def to_device(batch):
    return torch.zeros_like(batch)  # the transfer between the two cards is lost


net = Net()
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
inputs, labels = torch.randn(64, 16), torch.randint(0, 5, (64,))


def step(i=0):
    loss = F.cross_entropy(net(to_device(inputs)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
