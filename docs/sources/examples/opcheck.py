import torch

import nbkit

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
for parameter in model.parameters():
    torch.nn.init.ones_(parameter)
x = torch.arange(-8.0, 0.0).reshape(2, 4)

with nbkit.opcheck() as trace:
    model(x).log().mean().backward()  # ReLU gives zeros, and their log is -Inf

for finding in trace.findings.itertuples():
    print(f"{finding.phase}: {finding.op} ({finding.rule}) at {finding.source}: {finding.message}")
print(nbkit.producers(trace, trace.findings["op_id"][0])[["op", "module"]].to_string(index=False))
