"""Features are gathered from all processes by all_gather(), which gives them no gradient: the encoder stands still.

Fact: no gradient
Where: encoder
Line: dist.all_gather(parts, features)
Steps: 3
Report: huggingface/accelerate#1154, GitHub
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
if not dist.is_initialized():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


class Pairs(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.scale = nn.Linear(30, 16), nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        return F.normalize(self.encoder(x), dim=-1)


def gathered(features):
    parts = [torch.zeros_like(features) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, features)
    return torch.cat(parts)


model = Pairs()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
images = torch.randn(12, 30)


def step(i=0):
    one, two = (gathered(model(images + 0.1 * torch.randn_like(images))) for _ in range(2))
    loss = F.cross_entropy(one @ two.T * model.scale.exp(), torch.arange(len(one)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(3):
        print(i, step(i))
