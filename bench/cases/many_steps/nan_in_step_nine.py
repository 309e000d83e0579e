"""Sample 3 of batch 9 has a length of 0: the normalized vector is NaN from then on.

Fact: nan
Fact: step 9
Line: return x / x.norm(dim=-1, keepdim=True)
Steps: 14
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Direction(torch.nn.Module):
    def forward(self, x):
        return x / x.norm(dim=-1, keepdim=True)


net = torch.nn.Sequential(Direction(), torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
inputs, labels = torch.randn(14, 32, 8), torch.randint(0, 3, (14, 32))
inputs[9, 3] = 0.0


def step(i=0):
    loss = F.cross_entropy(net(inputs[i]), labels[i])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(14):
        print(i, step(i))
