"""The encoder is called for one sample after the other, not for the batch.

Fact: python_loop
Where: encoder
"""

import torch

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64))
        self.head = torch.nn.Linear(64, 5)

    def forward(self, x):
        return self.head(torch.stack([self.encoder(sample) for sample in x]))


net = Net()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
inputs, labels = torch.randn(128, 32), torch.randint(0, 5, (128,))


def step(i=0):
    loss = torch.nn.functional.cross_entropy(net(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
