"""requires_grad = False is set on the last layer, a module, and not on its parameters: it goes on to be trained.

Fact: requires_grad
Where: out
Steps: 2
Report: CSCYQJ/MICCAI23-ProtoContra-SFDA#18, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.out = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 3, 1)

    def forward(self, x):
        return self.out(self.body(x).relu())


model = Segmenter()
model.out.requires_grad = False
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
scans = torch.rand(4, 1, 16, 16)


def step(i=0):
    scores = model(scans).log_softmax(1)
    loss = -(scores.exp() * scores).sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
