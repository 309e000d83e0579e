"""A backward pass in autograd's device thread, on any machine: run as a script, prints what optrace recorded as JSON.

The device is torch's own Python backend (PrivateUse1) with a handful of ops computed on the CPU. Registering it changes
the whole process, hence the script.
"""

import json
import threading

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

import nbkit

aten = torch.ops.aten
GENERIC = [aten.mul.Tensor, aten.add.Tensor, aten.sum.default, aten.mm.default, aten.exp.default, aten.t.default]
GENERIC += [aten.expand.default, aten.detach.default]


class DeviceTensor(torch.Tensor):
    """A tensor on the Python device; `raw` holds its values on the CPU."""

    @staticmethod
    def __new__(cls, raw):
        made = torch._C._acc.create_empty_tensor(raw.shape, raw.dtype)
        made.__class__ = DeviceTensor
        return made

    def __init__(self, raw):
        self.raw = raw


def generic(op):
    return lambda *args: DeviceTensor(op(*[arg.raw if isinstance(arg, DeviceTensor) else arg for arg in args]))


def empty(size, dtype=None, **_):
    return DeviceTensor(torch.empty(size, dtype=dtype))


def empty_strided(size, stride, dtype=None, **_):
    return DeviceTensor(torch.empty_strided(size, stride, dtype=dtype))


def fill(tensor, value):
    tensor.raw.fill_(value)
    return tensor


def copy_from(source, target, non_blocking=False):
    (target.raw if isinstance(target, DeviceTensor) else target).copy_(
        source.raw if isinstance(source, DeviceTensor) else source
    )
    return target


def main():
    _setup_privateuseone_for_python_backend("npy")
    library = torch.library.Library("aten", "IMPL", "PrivateUse1")
    special = {"empty.memory_format": empty, "empty_strided": empty_strided, "fill_.Scalar": fill}
    for name, kernel in {**special, "_copy_from": copy_from}.items():
        library.impl(name, kernel, "PrivateUse1")
    for op in GENERIC:
        library.impl(op, generic(op), "PrivateUse1")
    x = torch.randn(3, 3).to("npy").requires_grad_()
    threads = set()
    with nbkit.optrace() as trace:
        y = x.mm(x).exp().mul(x).sum()
        y.register_hook(lambda gradient: threads.add(threading.get_ident()))
        y.backward()
    plain = torch.ones(2)
    with nbkit.optrace() as hooked:
        y = x.mm(x).sum()
        y.register_hook(lambda gradient: None if plain.neg().sum() else gradient)
        torch.autograd.grad(y, x)
    print(
        json.dumps(
            {
                "in another thread": threading.get_ident() not in threads and bool(threads),
                "hooked": json.loads(hooked.ops.to_json(orient="records")),
                "rows": json.loads(trace.ops.to_json(orient="records")),
            }
        )
    )


if __name__ == "__main__":
    main()
