import torch

import nbkit

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Softplus(), torch.nn.Linear(16, 4))
x = torch.randn(8, 16)

with nbkit.opcast("bfloat16", dry_run=True, phases="forward") as probed:  # the step stays as it is
    (1000 + model(x)).sub(1000).exp().mean().backward()
casts = probed.casts.sort_values("loss_change", key=abs, ascending=False)
print("the loss feels most:", sorted(casts["op"].head(2)))
print("errors above 1 %:", casts.loc[casts["error"] > 0.01, "op"].to_list())

with nbkit.opcast("bfloat16", ops="addmm", modules="0") as trace:  # this one op computes in bfloat16
    print(model(x).dtype)
print(trace.replaced[["op", "module", "ran"]].to_string(index=False))
