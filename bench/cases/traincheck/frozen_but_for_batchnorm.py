"""All layers but the batch norms are frozen by mistake: the model hardly learns.

Fact: requires_grad=False
Fact: never move
Where: first, second
Report: PyTorch forum 84911
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.bn = torch.nn.Linear(16, 64), torch.nn.BatchNorm1d(64)
        self.second = torch.nn.Linear(64, 5)

    def forward(self, x):
        return self.second(torch.relu(self.bn(self.first(x))))


net = Net()
for name, parameter in net.named_parameters():
    if "bn" not in name:
        parameter.requires_grad = False
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
inputs, labels = torch.randn(64, 16), torch.randint(0, 5, (64,))


def step(i=0):
    optimizer.zero_grad()
    loss = F.cross_entropy(net(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
