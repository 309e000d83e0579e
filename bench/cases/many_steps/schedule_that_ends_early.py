"""The cosine schedule counts epochs, and is stepped for each batch: after 4 batches the learning rate is 0.

Fact: learning rate
Fact: exactly 0 from step 4 on
Steps: 8
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
EPOCHS = 4
net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
schedule = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=EPOCHS)
inputs, labels = torch.randn(64, 16), torch.randint(0, 3, (64,))


def step(i=0):
    loss = F.cross_entropy(net(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(20):
        print(i, step(i))
