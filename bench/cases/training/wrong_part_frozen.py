"""For fine-tuning all but the head was to be frozen; the condition is the wrong way round, and the new head is frozen.

Fact: requires_grad=False
Fact: never move
Where: head
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU())
        self.head = torch.nn.Linear(64, 5)

    def forward(self, x):
        return self.head(self.body(x))


net = Net()
for name, parameter in net.named_parameters():
    if name.startswith("head"):
        parameter.requires_grad_(False)
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
