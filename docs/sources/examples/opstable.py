import torch

import nbkit

device = nbkit.SimulatedDevice()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)).to("sim")
x = torch.randn(6, 64).to("sim")

fault = nbkit.Fault("mm", "unordered_sum", phase="backward")  # as atomic additions do
with device.planted(fault), nbkit.opstable() as trace:  # %%opstable
    model(x).square().mean().backward()

for finding in trace.findings.itertuples():
    print(f"{finding.severity}: {finding.op} in module {finding.module} ({finding.phase}), {finding.count} calls")
print(trace.stability["run_to_run"].value_counts().to_string())
