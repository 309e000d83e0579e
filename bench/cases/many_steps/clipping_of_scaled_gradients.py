"""clip_grad_norm_ sees gradients that are still multiplied by the loss scale: unscale_() is missing.

Fact: scaled_clipping
Fact: still multiplied by the loss scale
Line: torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
scaler = torch.amp.GradScaler("cpu")
inputs, labels = torch.randn(64, 16), torch.randint(0, 3, (64,))


def step(i=0):
    with torch.autocast("cpu", torch.float16):
        loss = F.cross_entropy(net(inputs), labels)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
