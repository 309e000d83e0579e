import torch

import nbkit

model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.1), torch.nn.Linear(16, 2))
x = torch.randn(4, 8)

with nbkit.opcapture("calls") as trace:
    model(x).square().mean().backward()

print(f"{trace.meta['captured_calls']} calls in {trace.meta['folder']}")
print(trace.captures[["op", "phase", "call"]].head(3).to_string(index=False))
