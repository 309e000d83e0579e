"""The recurrent state is cut from the graph by .data, also within one sequence.

Fact: no_gradient
Fact: .data
Where: cell
Line: state = torch.tanh(self.update(state.data))
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Reader(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = torch.nn.Linear(8, 32)
        self.update = torch.nn.Linear(32, 32)
        self.head = torch.nn.Linear(32, 3)

    def forward(self, x):
        state = torch.relu(self.cell(x))
        state = torch.tanh(self.update(state.data))
        return self.head(state)


net = Reader()
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
inputs, labels = torch.randn(64, 8), torch.randint(0, 3, (64,))


def step(i=0):
    loss = F.cross_entropy(net(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for i in range(20):
        print(i, step(i))
