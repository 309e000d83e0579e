"""The model is judged in eval mode before any forward in training: its statistics are those of nobody.

Fact: eval mode
Fact: no batch has set
Where: norm
Report: PyTorch 51800
"""

import torch

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = torch.nn.Linear(16, 32), torch.nn.BatchNorm1d(32)
        self.second = torch.nn.Linear(32, 5)

    def forward(self, x):
        return self.second(torch.relu(self.norm(self.first(x))))


net = Net().eval()
inputs = torch.randn(64, 16) * 20


def step(i=0):
    with torch.no_grad():
        return net(inputs).std().item()


if __name__ == "__main__":
    print(step())
