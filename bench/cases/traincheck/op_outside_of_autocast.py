"""One linear layer does not see the autocast around it, and runs in float32.

Fact: computes in float32
Fact: autocast does not reach it
Where: in module inner,
Report: Lightning Thunder 725
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Primitive(torch.nn.Linear):
    def forward(self, x):
        with torch.autocast("cpu", enabled=False):  # as the transformed op did
            return F.linear(x.float(), self.weight, self.bias)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.inner, self.last = torch.nn.Linear(16, 64), Primitive(64, 64), torch.nn.Linear(64, 5)

    def forward(self, x):
        return self.last(torch.relu(self.inner(torch.relu(self.first(x)))))


net = Net()
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
inputs, labels = torch.randn(64, 16), torch.randint(0, 5, (64,))


def step(i=0):
    with torch.autocast("cpu", torch.bfloat16):
        loss = F.cross_entropy(net(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
