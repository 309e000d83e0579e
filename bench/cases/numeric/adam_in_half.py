"""Adam in float16: its eps of 1e-8 is 0 there, as are squares of small gradients; a step divides by 0.

Fact: inf
Fact: aten.addcdiv_
Fact: inputs there:
Line: optimizer.step()
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3)).half()
optimizer = torch.optim.Adam(net.parameters(), 1e-3, eps=1e-8)
inputs, labels = torch.randn(64, 16).half(), torch.randint(0, 3, (64,))


def step(i=0):
    loss = F.cross_entropy(net(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(5):
        print(i, step(i))
