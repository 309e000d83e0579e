"""Complex numbers that are conjugated or negated lazily have the values on the device that they have on the CPU."""

import pytest
import torch

import nbkit
from tests.support.simulated import simulated_device

OPS = {
    "real": lambda a: a.conj().real * 2,
    "imag, negated": lambda a: a.conj().imag.exp(),
    "imag, written to": lambda a: a.clone().conj().imag.mul_(2),
    "sum of two": lambda a: a.conj() + a,
    "product": lambda a: a.mH @ a.conj(),
    "outer": lambda a: torch.outer(a[0], a[0].conj()),
    "made of others": lambda a: torch.linalg.pinv(a.mH),
    "written to": lambda a: a.clone().conj().mul_(2j),
    "copied to": lambda a: torch.zeros_like(a).conj().copy_(a),
    "number": lambda a: torch.tensor(a.conj()[0, 1].item()),
    "brought back": lambda a: a.conj().cpu(),
}


def gradient(a):
    leaf = a.detach().clone().requires_grad_()
    ((leaf.conj().imag.exp() * leaf.real).sum() + (leaf @ leaf.mH).abs().sum()).backward()
    return leaf.grad


@pytest.mark.parametrize("op", [*OPS.values(), gradient], ids=[*OPS, "gradient"])
def test_values_are_those_of_the_cpu(op):
    values = torch.randn(3, 3, dtype=torch.cfloat, generator=torch.Generator().manual_seed(0))
    there = op(values.to(simulated_device().torch_device)).cpu()
    assert torch.equal(there.resolve_conj().resolve_neg(), op(values).resolve_conj().resolve_neg())


def test_a_tensor_of_the_device_says_that_it_is_conjugated():
    made = torch.ones(2, dtype=torch.cfloat).to(simulated_device().torch_device)
    assert made.conj().is_conj() and not made.conj().resolve_conj().is_conj()
    assert made.conj().imag.is_neg()
    with pytest.raises(RuntimeError, match="unresolved conjugated"):
        torch.view_as_real(made.conj())


@pytest.mark.parametrize("verb", [nbkit.opfallback, nbkit.opstable, nbkit.opdiff, nbkit.opcheck])
def test_verbs_leave_the_values_as_they_are(verb):
    values = torch.randn(3, 3, dtype=torch.cfloat, generator=torch.Generator().manual_seed(0))
    there = values.to(simulated_device().torch_device)
    with verb() as trace:
        found = gradient(there)
    assert torch.equal(found.cpu(), gradient(values))
    assert trace.meta.get("mismatches", 0) == 0 and len(trace.ops) > 10
