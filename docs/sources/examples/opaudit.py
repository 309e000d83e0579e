import torch
from torch import nn

import nbkit


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.head = nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z = self.encoder(x)
        z = z.detach().clamp(-5, 5)  # the encoder is cut off
        return self.head(z)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

with nbkit.opaudit() as trace:
    for _ in range(2):  # no zero_grad()
        model(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()

for finding in trace.findings.itertuples():
    print(f"{finding.severity}, {finding.rule}: {finding.message}")
print(trace.parameters[["name", "gradient", "accumulated", "changed_fraction"]].to_string(index=False))
