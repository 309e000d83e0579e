import torch

import nbkit

device = nbkit.SimulatedDevice()
with device.planted(
    nbkit.Fault("aten.addmm", "relative_error", size=0.01),
    nbkit.Fault("aten.bmm", "stale_result"),
) as planted:
    torch.nn.Linear(4, 8).to("sim")(torch.ones(2, 4, device="sim"))
report = planted.report()
