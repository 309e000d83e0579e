import torch

import nbkit

device = nbkit.SimulatedDevice()
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
for parameter in model.parameters():
    torch.nn.init.ones_(parameter)
x = torch.arange(8.0).reshape(2, 4)

with nbkit.optrace(values="stats") as here:
    model(x)
model.to("sim")
wrong = nbkit.Fault("aten.addmm", "relative_error", size=0.01, nth_call=2)
with device.planted(wrong), nbkit.optrace(values="stats") as there:
    model(x.to("sim"))

found = nbkit.compare_values(there, here)
print(found.query("action == 'match'")[["op", "module", "error_class"]].to_string(index=False))
print(found.attrs["first_divergence"]["message"])
