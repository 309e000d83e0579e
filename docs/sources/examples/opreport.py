from pathlib import Path

import torch

import nbkit

model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
with nbkit.optrace() as trace:
    model(torch.randn(4, 8)).sum().backward()
with nbkit.opcheck() as checked:
    model(torch.randn(4, 8)).sum().backward()

nbkit.opreport(trace, checked, path="report.html")
print(Path("report.html").read_text(encoding="utf-8")[:15])
