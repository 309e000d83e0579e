"""The length head is to match the number of words that argmax picks: no gradient goes through argmax.

Fact: no_gradient
Fact: argmax
Where: counter
Line: predicted = self.counter(x).argmax(-1).float()
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.classifier = torch.nn.Linear(16, 5)
        self.counter = torch.nn.Linear(16, 10)

    def forward(self, x):
        predicted = self.counter(x).argmax(-1).float()
        return self.classifier(x), predicted


net = Net()
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
inputs, labels, counts = torch.randn(64, 16), torch.randint(0, 5, (64,)), torch.randint(0, 10, (64,)).float()


def step(i=0):
    scores, predicted = net(inputs)
    loss = F.cross_entropy(scores, labels) + F.mse_loss(predicted, counts)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(20):
        print(i, step(i))
