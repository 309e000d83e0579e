"""A model is split over two cards, and the second computes before the activations are there: Inf and NaN.

Fact: memory from empty() that was not filled
Fact: 128 NaN
Line: hidden = second(received)
Report: Baichuan2 86
"""

import torch

torch.manual_seed(0)
first, second = torch.nn.Linear(16, 32), torch.nn.Sequential(torch.nn.GELU(), torch.nn.Linear(32, 8))


def sent(x):
    received = torch.empty_like(x)  # the peer-to-peer copy does nothing
    received.view(torch.int32).fill_(0x7FC00000)  # what lay in that memory
    return received


def step(i=0):
    with torch.no_grad():
        received = sent(first(torch.randn(4, 16)))
        hidden = second(received)
    return hidden.abs().mean().item()


if __name__ == "__main__":
    for i in range(3):
        print(i, step(i))
