"""The blocks of the model stand in a plain Python list, so that parameters() does not have them.

Fact: not_in_optimizer
Fact: another model calls it without holding it
Where: Block
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.linear = torch.nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.linear(self.norm(x)))


class Net(torch.nn.Module):
    def __init__(self, depth=3, width=32):
        super().__init__()
        self.stem = torch.nn.Linear(8, width)
        self.blocks = [Block(width) for _ in range(depth)]
        self.head = torch.nn.Linear(width, 3)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


net = Net()
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
inputs, labels = torch.randn(64, 8), torch.randint(0, 3, (64,))


def step(i=0):
    optimizer.zero_grad()
    loss = F.cross_entropy(net(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(20):
        print(i, step(i))
