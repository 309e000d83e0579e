"""Pseudo labels are added to a shallow copy of the masks, by an op in place: the split itself takes in test nodes.

Fact: in place
Line: pseudo["train"] |= sure
Steps: 4
Report: VITA-Group/Large_Scale_GCN_Benchmarking#5, GitHub
Missed: a mask that grows in place from step to step is not told from one that is meant to
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
features, labels = torch.randn(60, 12), torch.randint(0, 3, (60,))
masks = {"train": torch.arange(60) < 30, "test": torch.arange(60) >= 45}
net = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.Adam(net.parameters(), 3e-2)


def step(i=0):
    scores = net(features)
    loss = F.cross_entropy(scores[masks["train"]], labels[masks["train"]])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    pseudo = dict(masks)
    sure = scores.detach().softmax(-1).amax(-1) > 0.5
    pseudo["train"] |= sure
    return loss.item(), int((pseudo["train"] & masks["test"]).sum())


if __name__ == "__main__":
    for i in range(4):
        print(i, step(i))
