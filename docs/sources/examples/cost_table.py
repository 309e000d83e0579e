import torch

import nbkit

model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512))
x = torch.randn(256, 512)

table = nbkit.cost_table(model, x)
print(nbkit.cost_table_text(table))
