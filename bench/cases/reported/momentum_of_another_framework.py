"""A batch norm was ported with momentum=0.99, which in torch means that the last batch is nearly all it keeps.

Fact: momentum
Where: norm
Steps: 3
Report: r9y9/tacotron_pytorch#19, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)


class BatchNormConv(nn.Module):
    def __init__(self, inputs, outputs, width):
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, width, padding=width // 2, bias=False)
        self.norm = nn.BatchNorm1d(outputs, momentum=0.99, eps=1e-3)

    def forward(self, x):
        return self.norm(self.conv(x).relu())


model = nn.Sequential(BatchNormConv(12, 24, 3), BatchNormConv(24, 12, 5))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
spectra = torch.randn(30, 12, 40) + torch.randn(30, 1, 1)


def step(i=0):
    x = spectra[10 * (i % 3) : 10 * (i % 3) + 10]
    loss = nn.functional.l1_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(3):
        print(i, step(i))
