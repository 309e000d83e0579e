"""A model with one output ends with a softmax over it, which is 1 whatever the model gives: it learns nothing.

Fact: softmax
Fact: is 1
Steps: 4
Report: keras-team/keras#18909, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(18, 32), nn.ReLU(), nn.Linear(32, 1), nn.Softmax(-1))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
patients, is_ill = torch.randn(30, 18), torch.randint(0, 2, (30, 1)).float()


def step(i=0):
    loss = nn.functional.binary_cross_entropy(model(patients), is_ill)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(4):
        print(i, step(i))
