import copy

import torch

import nbkit

device = nbkit.SimulatedDevice()
torch.manual_seed(0)
layers = [torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 1)]
model = torch.nn.Sequential(*layers).to("sim")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(4, 8).to("sim")
first = copy.deepcopy(model.state_dict())


def step():
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
    return model[0].weight.detach().cpu()


def is_right(weight):
    return torch.allclose(weight, expected, rtol=1e-5)


expected = step()
model.load_state_dict(first)
with device.planted(nbkit.Fault("native_layer_norm", "wrong_epsilon"), nbkit.Fault("tanh_backward", size=0.1)):
    trace = nbkit.opbisect(step, is_right, state=[model, optimizer])

print(trace.meta["verdict"])
for culprit in trace.meta["culprits"]:
    print(f"{culprit['phase']}: {culprit['op']}, call {culprit['call']}, in module {culprit['module']}")
print(trace.trials[["stage", "calls", "passed"]].to_string(index=False))
