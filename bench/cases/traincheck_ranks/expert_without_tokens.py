"""Workers of a mixture of experts see other experts: one gets no token, and takes part in no exchange.

Fact: no op of the recording reads
Where: experts.3
Report: DeepSpeed 5794
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Mixture(torch.nn.Module):
    def __init__(self, width=16, count=4):
        super().__init__()
        self.gate = torch.nn.Linear(width, count)
        self.experts = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(count))
        torch.nn.init.constant_(self.gate.bias[3:], -100.0)

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).max(-1)
        y = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).nonzero()[:, 0]
            if len(rows):
                y = y.index_add(0, rows, weights[rows, None] * expert(x[rows]))
        return x + y


net = torch.nn.Sequential(Mixture(), torch.nn.Linear(16, 5))
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
inputs, labels = torch.randn(64, 16), torch.randint(0, 5, (64,))


def step(i=0):
    loss = F.cross_entropy(net(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(10):
        print(i, step(i))
