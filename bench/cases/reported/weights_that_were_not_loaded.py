"""The saved names begin with "model.", and strict=False loads none of them: the pretrained net is random.

Fact: load_state_dict
Fact: strict=False
Line: net.load_state_dict(saved, strict=False)
Steps: 2
Report: pytorch/examples#1029, GitHub
Missed: load_state_dict() runs before the step, and what it returns is not recorded
"""

import torch
from torch import nn

torch.manual_seed(0)


def build():
    return nn.Sequential(nn.Linear(14, 40), nn.GELU(), nn.Linear(40, 40), nn.GELU(), nn.Linear(40, 4))


class Lit(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = build()


saved = Lit().state_dict()
net = build()
net.load_state_dict(saved, strict=False)
optimizer = torch.optim.AdamW(net.parameters(), 1e-5)
x, y = torch.randn(24, 14), torch.randint(0, 4, (24,))


def step(i=0):
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
