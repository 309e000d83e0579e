"""Batch 12 of 30 holds a sample in other units: a spike of the loss, from which Adam recovers slowly.

Fact: unusual_batch
Fact: Sample 7 of the batch of step 12
Line: loss = F.mse_loss(net(inputs[i]), targets[i])
Steps: 30
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), 1e-2)
inputs = torch.randn(30, 32, 8)
targets = inputs.sum(-1, keepdim=True)
targets[12, 7] *= 1e4


def step(i=0):
    loss = F.mse_loss(net(inputs[i]), targets[i])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(30):
        print(i, step(i))
