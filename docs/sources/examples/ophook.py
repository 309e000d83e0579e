import torch
import torch.nn.functional as F

import nbkit

x = torch.linspace(-1, 1, 8).reshape(2, 4)

with nbkit.ophook("torch.nn.functional.softmax", nbkit.opdiff, when=lambda x, dim, **_: dim == -1, limit=2) as hook:
    F.softmax(x, 0)
    F.softmax(x, -1)
    torch.relu(x)

print(hook)
for call in hook.traces:
    print(call.function, call.call, call.trace.diffs[["op", "status"]].to_numpy().tolist())
