import torch

import nbkit

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
with nbkit.optrace(values="stats") as trace:
    model(torch.ones(2, 4)).sum().backward()

tensors = nbkit.tensors_with_ops(trace)
products = tensors.query("role == 'output' and op == 'aten.mm.default'")
print(products[["op", "phase", "module", "shape", "size_bytes"]].to_string(index=False))
