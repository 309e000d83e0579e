import subprocess
import sys
from pathlib import Path

import nbkit

Path("train.py").write_text("""\
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
batches = [torch.randn(16, 8) for _ in range(12)]
batches[9][3] *= 1000  # one sample in other units

def step(x):
    optimizer.zero_grad()
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()

for x in batches:
    step(x)
""")
words = [sys.executable, "-m", "nbkit", "audit", "train.py", "--step", "step", "-o", "audit"]
subprocess.run(words, check=True, capture_output=True)

trace = nbkit.load("audit/audit")
steps = trace.steps
print(steps[["step", "loss", "gradient_norm", "anomaly"]].tail(4).round(2).to_string(index=False))
for finding in trace.findings.itertuples():
    print(f"{finding.severity}, {finding.rule}: {finding.message}")
