import torch

import nbkit

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
x = torch.arange(8.0).reshape(2, 4)


def step():
    model(x).mean().backward()


trace = nbkit.optime(warmup=1, repeats=3, memory=True, shapes=True, device="cpu").run(step)
modules = nbkit.by_module_tree(trace.ops)  # self and total times by module; here only what does not vary
print(modules[["module", "calls"]].to_string(index=False))
