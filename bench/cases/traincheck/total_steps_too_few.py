"""The number of steps is computed wrongly (batches // accumulation), so that the schedule is over too early.

Fact: learning rate
Fact: exactly 0 from step 4 on
Steps: 8
Report: Transformers 33455
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
BATCHES, ACCUMULATION = 8, 2
net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 5))
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
total = BATCHES // ACCUMULATION
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: max(0.0, 1 - done / total))
inputs, labels = torch.randn(BATCHES, 32, 16), torch.randint(0, 5, (BATCHES, 32))


def step(i=0):
    loss = F.cross_entropy(net(inputs[i]), labels[i])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(BATCHES):
        print(i, step(i))
