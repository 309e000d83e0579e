"""Gradients are clipped when the optimizer has used them already.

Fact: after
Line: nn.utils.clip_grad_norm_(model.parameters(), 0.5)
Steps: 4
Report: VGraphRNN/VGRNN#4, GitHub
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.GRU(5, 20, batch_first=True)
readout = nn.Linear(20, 5)
optimizer = torch.optim.Adam([*model.parameters(), *readout.parameters()], 1e-2)
walks = 4 * torch.randn(10, 26, 5).cumsum(1)


def step(i=0):
    states, _ = model(walks[:, :-1])
    loss = nn.functional.mse_loss(readout(states), walks[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    return loss.item()


if __name__ == "__main__":
    for i in range(4):
        print(i, step(i))
