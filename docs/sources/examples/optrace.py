import torch

import nbkit

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.arange(8.0).reshape(2, 4)

with nbkit.optrace(values="stats") as trace:
    model(x).mean().backward()
    optimizer.step()

backward = trace.ops.query("level == 'aten' and phase == 'backward' and forward_op_id.notna()")
print(backward[["op_id", "op", "module", "forward_op_id"]].to_string(index=False))
