import torch

import nbkit

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Softplus(), torch.nn.Linear(16, 4))
x = torch.randn(8, 16)

with nbkit.opcast("bfloat16", dry_run=True, phases="forward") as probed:  # the step stays as it is
    model(x).exp().mean().backward()
for row in probed.casts.itertuples():
    print(f"{row.op}: error {row.error:.0e}, loss {row.loss_change:+.0e}")

with nbkit.opcast("bfloat16", ops="addmm", modules="0") as trace:  # this one op computes in bfloat16
    print(model(x).dtype)
print(trace.replaced[["op", "module", "ran"]].to_string(index=False))
