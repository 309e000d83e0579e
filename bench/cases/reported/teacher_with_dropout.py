"""The frozen teacher stays in training mode: dropout makes its targets noisy.

Fact: dropout
Where: teacher
Steps: 2
Report: yxuansu/TaCL#11, GitHub
Missed: dropout_in_eval wants eval mode; random numbers in a frozen model in training mode are not told
"""

import copy

import torch
from torch import nn

torch.manual_seed(0)


class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.student = nn.Sequential(nn.Embedding(90, 16), layer)
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)

    def forward(self, masked, whole):
        with torch.no_grad():
            targets = self.teacher(whole)
        alike = self.student(masked) @ targets.mT / 16**0.5
        return nn.functional.cross_entropy(alike.flatten(0, 1), torch.arange(whole.shape[1]).repeat(len(whole)))


model = Contrast()
optimizer = torch.optim.AdamW(model.student.parameters(), 1e-3)
whole = torch.randint(1, 90, (6, 10))


def step(i=0):
    model.train()
    masked = whole.masked_fill(torch.rand(6, 10) < 0.15, 0)
    loss = model(masked, whole)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
