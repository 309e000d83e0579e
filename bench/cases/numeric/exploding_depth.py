"""Twelve linear layers with weights that are too large; clipping hides it.

Fact: exploding_gradient
Fact: 12 Linear layers
"""

import torch

torch.manual_seed(0)
layers = [torch.nn.Linear(48, 48) for _ in range(12)]
for layer in layers:
    torch.nn.init.normal_(layer.weight, std=1.5)
net = torch.nn.Sequential(*[part for layer in layers for part in (layer, torch.nn.Tanh())], torch.nn.Linear(48, 1))
optimizer = torch.optim.SGD(net.parameters(), 1e-4)
inputs, targets = torch.randn(64, 48), torch.randn(64, 1)


def step(i=0):
    loss = torch.nn.functional.mse_loss(net(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(20):
        print(i, step(i))
