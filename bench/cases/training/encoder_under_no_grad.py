"""The encoder still runs under torch.no_grad() from the time when it was frozen; it is to be trained now.

Fact: no_gradient
Fact: torch.no_grad
Where: encoder
Line: z = self.encoder(x)
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32))
        self.head = torch.nn.Linear(32, 5)

    def forward(self, x):
        with torch.no_grad():
            z = self.encoder(x)
        return self.head(z)


net = Net()
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
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
