"""Parameters are kept from weight decay by names that the norms of this model do not have.

Fact: decayed by 0.1
Fact: are kept from weight decay
Steps: 2
"""

import torch
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.mlp, self.ln_f = nn.LayerNorm(16), nn.Linear(16, 16), nn.LayerNorm(16)

    def forward(self, x):
        return self.ln_f(x + self.mlp(self.ln_1(x)).relu())


model = nn.Sequential(Block(), Block(), nn.Linear(16, 4))
FREE = ("bias", "LayerNorm.weight")
named = [(any(part in name for part in FREE), parameter) for name, parameter in model.named_parameters()]
groups = [
    {"params": [parameter for is_free, parameter in named if not is_free], "weight_decay": 0.1},
    {"params": [parameter for is_free, parameter in named if is_free], "weight_decay": 0.0},
]
optimizer = torch.optim.AdamW(groups, 1e-3)
x, y = torch.randn(16, 16), torch.randint(0, 4, (16,))


def step(i=0):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(2):
        print(i, step(i))
