"""A recurrence with weights that are too large, unrolled over 60 steps, without clipping: Inf after some steps.

Fact: overflow
Fact: in step 1
Where: recurrent
Line: h = torch.relu(self.recurrent(h) + self.input(x[:, t]))
Steps: 6
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Recurrent(torch.nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.input, self.recurrent = torch.nn.Linear(4, width), torch.nn.Linear(width, width, bias=False)
        torch.nn.init.normal_(self.recurrent.weight, std=0.45)
        self.head = torch.nn.Linear(width, 1)

    def forward(self, x):
        h = torch.zeros(len(x), 24)
        for t in range(x.shape[1]):
            h = torch.relu(self.recurrent(h) + self.input(x[:, t]))
        return self.head(h)


net = Recurrent()
optimizer = torch.optim.SGD(net.parameters(), 1e-3)
inputs = torch.randn(16, 60, 4)
targets = inputs.sum((1, 2))[:, None]


def step(i=0):
    loss = F.mse_loss(net(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(6):
        print(i, step(i))
