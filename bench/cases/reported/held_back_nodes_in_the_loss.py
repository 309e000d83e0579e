"""The loss of a graph network is over all nodes: the mask of the training nodes is there and is not used.

Fact: mask
Line: loss = F.cross_entropy(scores, labels)
Steps: 2
Report: waittim/graph-fraud-detection#3, GitHub
Missed: which nodes are held back is not told by what the loss reads
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(10, 16), nn.Linear(16, 2)

    def forward(self, edges, x):
        return edges @ self.second((edges @ self.first(x)).relu())


links = ((torch.rand(40, 40) < 0.1) | torch.eye(40, dtype=torch.bool)).float()
edges = links / links.sum(1, keepdim=True)
features, labels, is_trained = torch.randn(40, 10), torch.randint(0, 2, (40,)), torch.rand(40) < 0.6
model = GCN()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)


def step(i=0):
    scores = model(edges, features)
    loss = F.cross_entropy(scores, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        right = (model(edges, features).argmax(-1) == labels)[~is_trained].float().mean()
    return loss.item(), right.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
