import torch

import nbkit

device = nbkit.SimulatedDevice([nbkit.Fault("aten.addmm", "relative_error", size=0.01)])  # a device that is wrong
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
for parameter in model.parameters():
    torch.nn.init.ones_(parameter)
model.to("sim")
x = torch.arange(8.0).reshape(2, 4).to("sim")

with nbkit.opdiff() as trace:
    model(x).mean().backward()

print(trace.diffs["status"].value_counts().to_string())
wrong = trace.diffs.query("status == 'mismatch'")
print(wrong[["op", "module", "phase", "max_rel_error"]].round(4).to_string(index=False))
