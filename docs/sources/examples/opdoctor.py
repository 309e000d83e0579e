import torch
from torch import nn

import nbkit


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.head = nn.Linear(8, 64), nn.Linear(64, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.encoder(x)))


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(32, 8)
y = x.sum(1)


def step() -> None:
    loss = (model(x) - y).square().mean()  # of shapes [32, 1] and [32]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


trace = nbkit.opdoctor(repeats=4).run(step)

for finding in trace.findings.itertuples():
    print(f"{finding.severity}, {finding.rule}: {finding.message}")
print({name: trace.meta["step"][name] for name in ("runs", "flops", "held_bytes")})
