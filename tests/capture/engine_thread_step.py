"""Runs a backward pass in autograd's device thread, on any machine: as a script, prints what optrace recorded as JSON.

The device is the simulated one. Making it changes the whole process, hence the script.
"""

import json
import threading

import torch

import nbkit


def main():
    device = nbkit.SimulatedDevice().torch_device
    x = torch.randn(3, 3).to(device).requires_grad_()
    threads = set()
    with nbkit.optrace() as trace:
        y = x.mm(x).exp().mul(x).sum()
        y.register_hook(lambda gradient: threads.add(threading.get_ident()))
        y.backward()
    plain, tanh = torch.ones(2), torch.nn.Tanh()
    with nbkit.optrace() as hooked:
        y = x.mm(x).sum()
        y.register_hook(lambda gradient: None if tanh(plain.neg()).sum() else gradient)
        torch.autograd.grad(y, x)
    optimizer = torch.optim.SGD([x], lr=0.1)
    with nbkit.optrace() as steps:
        for _ in range(3):  # without zero_grad()
            x.mm(x).sum().backward()
            optimizer.step()
    print(
        json.dumps(
            {
                "in another thread": threading.get_ident() not in threads and bool(threads),
                "skipped": list(hooked.meta["skipped"]),
                "hooked": json.loads(hooked.ops.to_json(orient="records")),
                "steps": json.loads(steps.ops.to_json(orient="records")),
                "rows": json.loads(trace.ops.to_json(orient="records")),
            }
        )
    )


if __name__ == "__main__":
    main()
