import torch

import nbkit

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 8))
exports = nbkit.compare_exports(model, ["export", "compile"], inputs=torch.randn(4, 8), backward=True)
print(exports.to_string())
