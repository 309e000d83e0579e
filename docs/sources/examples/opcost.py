import torch

import nbkit

model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512))
optimizer = torch.optim.AdamW(model.parameters())
x = torch.randn(256, 512)

with nbkit.opcost() as trace:  # %%opcost
    model(x).square().mean().backward()
    optimizer.step()

print(trace.costs.groupby("phase")["flops"].sum().to_string())
print("saved for backward:", trace.saved["new_bytes"].sum(), "bytes")
print("peak:", trace.memory["allocated_bytes"].max(), "bytes")
print(trace.storages.groupby("kind")["size_bytes"].sum().to_string())
