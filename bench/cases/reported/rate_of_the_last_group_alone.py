"""The line that sets the learning rate stands behind the loop: the last group alone warms up.

Fact: learning rate
Fact: group
Line: group["lr"] = rate
Steps: 6
Report: rasbt/LLMs-from-scratch#692, GitHub
Missed: learning rates of groups are not compared with each other over the steps
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(100, 16), nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 100))
matrices = [parameter for parameter in model.parameters() if parameter.dim() > 1]
vectors = [parameter for parameter in model.parameters() if parameter.dim() < 2]
groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, 5e-4)
ids = torch.randint(0, 100, (8, 21))


def step(i=0):
    rate = 1e-6 + (5e-4 - 1e-6) * i / 20
    for group in optimizer.param_groups:
        group["betas"] = (0.9, 0.95)
    group["lr"] = rate
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(6):
        print(i, step(i))
