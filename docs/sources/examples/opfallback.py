import torch
from torch.nn.functional import softmax

import nbkit

# An accelerator whose softmax is wrong by 1 %.
device = nbkit.SimulatedDevice([nbkit.Fault("aten._softmax", "relative_error", size=0.01)]).torch_device
x = torch.linspace(-2, 2, 8).reshape(2, 4)
expected = softmax(x * 3, -1)

print("on the device:", (softmax(x.to(device) * 3, -1).cpu() - expected).abs().max().item() > 1e-3)
with nbkit.opfallback(ops="softmax") as trace:
    out = softmax(x.to(device) * 3, -1)
print("with softmax on the CPU:", (out.cpu() - expected).abs().max().item() > 1e-3, out.device)
print(trace.replaced[["op", "phase", "call", "ran"]].to_string(index=False))
