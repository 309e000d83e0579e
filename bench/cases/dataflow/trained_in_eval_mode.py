"""The validation loop leaves the model in eval mode: from then on BatchNorm trains on fixed statistics.

Fact: trained_in_eval
Fact: BatchNorm1d
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
inputs, labels = torch.randn(64, 16), torch.randint(0, 3, (64,))


def validate():
    net.eval()
    with torch.no_grad():
        return (net(inputs).argmax(-1) == labels).float().mean()


validate()


def step(i=0):
    loss = F.cross_entropy(net(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i), validate())
