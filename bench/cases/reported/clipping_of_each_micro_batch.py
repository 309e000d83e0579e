"""clip_grad_norm_ runs after each of four backward passes, on sums that are not complete.

Fact: clip_grad_norm_
Fact: backward pass
Line: nn.utils.clip_grad_norm_(net.parameters(), 0.1)
Steps: 3
Report: huggingface/transformers#1563, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(22, 48), nn.Tanh(), nn.Linear(48, 4))
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
x, y = torch.randn(32, 22), torch.randint(0, 4, (32,))


def step(i=0):
    optimizer.zero_grad()
    total = 0.0
    for inputs, labels in zip(x.split(8), y.split(8), strict=True):
        loss = nn.functional.cross_entropy(net(inputs), labels) / 4
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        total += loss.item()
    optimizer.step()
    return total


if __name__ == "__main__":
    for i in range(3):
        print(i, step(i))
