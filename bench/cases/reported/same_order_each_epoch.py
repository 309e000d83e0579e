"""set_epoch() is never called on a DistributedSampler: each epoch has the same batches in the same order.

Fact: DistributedSampler
Fact: epoch
Steps: 12
Report: pytorch/pytorch#31771, GitHub
Missed: the order of batches, or the epoch of a sampler, is not compared with the one before
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
dataset = TensorDataset(torch.randn(64, 10), torch.randint(0, 3, (64,)))
sampler = DistributedSampler(dataset, num_replicas=2, rank=0, shuffle=True)
loader = DataLoader(dataset, batch_size=8, sampler=sampler)


def batches():
    while True:
        yield from loader


feed = batches()


def step(i=0):
    x, y = next(feed)
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(12):
        print(i, step(i))
