"""The probe that records features for a perceptual loss detaches them: the loss changes no weight.

Fact: detach
Fact: gradient
Line: self.seen.append(result.detach())
Steps: 2
Report: myscience/open-genie#6, GitHub
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Probe:
    def __init__(self, module):
        self.seen = []
        module.register_forward_hook(self.record)

    def record(self, module, given, result):
        self.seen.append(result.detach())


judge = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3)).eval().requires_grad_(False)
probe = Probe(judge[1])
model = nn.Sequential(nn.Conv2d(3, 12, 3, 2, 1), nn.GELU(), nn.ConvTranspose2d(12, 3, 4, 2, 1))
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
frames = torch.rand(6, 3, 16, 16)


def perceptual(made, real):
    probe.seen.clear()
    judge(made)
    judge(real)
    ours, theirs = probe.seen
    return F.mse_loss(ours, theirs)


def step(i=0):
    made = model(frames)
    loss = F.l1_loss(made, frames) + perceptual(made, frames)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
