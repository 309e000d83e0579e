"""The model ends with a sigmoid, and the loss applies one more.

Fact: double_activation
Fact: the result of a sigmoid
Line: loss = criterion(net(inputs).squeeze(-1), labels)
"""

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1), torch.nn.Sigmoid())
criterion = torch.nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
inputs = torch.randn(64, 16)
labels = (inputs[:, 0] > 0).float()


def step(i=0):
    loss = criterion(net(inputs).squeeze(-1), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(20):
        print(i, step(i))
