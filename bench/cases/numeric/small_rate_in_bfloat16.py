"""The whole model is bfloat16, the learning rate 1e-6: no weight moves.

Fact: lost_update
Fact: bfloat16 rounds
Where: Sequential
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 10)).to(torch.bfloat16)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-6, weight_decay=0.0)
inputs, labels = torch.randn(64, 32, dtype=torch.bfloat16), torch.randint(0, 10, (64,))


def step(i=0):
    loss = F.cross_entropy(net(inputs).float(), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(20):
        print(i, step(i))
