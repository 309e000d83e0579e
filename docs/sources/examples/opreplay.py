import torch

import nbkit

model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.1), torch.nn.Linear(16, 2))
x = torch.randn(4, 8)
with nbkit.opcapture("calls"):
    model(x).square().mean().backward()

trace = nbkit.opreplay("calls", repeats=5, warmup=1)
same, whole = trace.meta["identical_calls"], trace.meta["captured_calls"]
print(f"{same} of {whole} calls do the same to the bit")
print(trace.diffs["status"].value_counts().to_dict())
print(trace.timings["repeats"].unique().tolist(), bool(trace.replayed["bytes_per_s"].max() > 0))
