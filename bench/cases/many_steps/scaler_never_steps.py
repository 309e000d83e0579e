"""The square root of a gate that is 0 has an infinite gradient: GradScaler skips each step, and the loss stays flat.

Fact: skipped_step
Fact: GradScaler skips all
Where: gates
Steps: 8
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Gated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = torch.nn.Linear(16, 32), torch.nn.Linear(32, 3)
        self.gates = torch.nn.Parameter(torch.zeros(32))

    def forward(self, x):
        return self.head(torch.relu(self.body(x)) * (1 + self.gates))


net = Gated()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
scaler = torch.amp.GradScaler("cpu")
inputs, labels = torch.randn(64, 16), torch.randint(0, 3, (64,))


def step(i=0):
    with torch.autocast("cpu", torch.float16):
        loss = F.cross_entropy(net(inputs), labels) + 1e-3 * net.gates.abs().sqrt().sum()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
