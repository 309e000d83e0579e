"""Validation runs with autograd, and the list of outputs keeps the graph of each batch.

Fact: no_grad
Line: outputs.append(net(x))
"""

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.GELU(), torch.nn.Linear(512, 10)).eval()
batches = torch.randn(8, 128, 64)


def step(i=0):
    outputs = []
    for x in batches:
        outputs.append(net(x))
    return torch.cat(outputs).argmax(-1)


if __name__ == "__main__":
    print(step().shape)
