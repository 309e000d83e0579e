"""Zeros without memory, which a second backward pass makes: to read them as memory ends the process."""

import pytest
import torch

import nbkit


def differentiated_twice():
    x = torch.zeros(3, requires_grad=True)
    [slope] = torch.autograd.grad(x.abs().pow(1.5).sum(), x, create_graph=True)
    slope.sum().backward()  # sign() has a slope of zeros without memory
    return torch._efficientzerotensor(3) * 2 + torch.ones(3)


VERBS = {
    "opcheck": nbkit.opcheck,
    "opdiff": nbkit.opdiff,
    "against": lambda: nbkit.opdiff(against="cpu:float64"),
    "stats": lambda: nbkit.optrace(values="stats"),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("recorder", ["native", "python"])
def test_zeros_without_memory_are_zeros(verb, recorder, monkeypatch):
    if recorder == "python":
        monkeypatch.setenv("NBKIT_RECORDER", "python")
    with VERBS[verb]() as trace:
        result = differentiated_twice()
    assert torch.equal(result, torch.ones(3)) and trace.complete
    assert not any("Error" in reason for reason in trace.meta["skipped"]), trace.meta["skipped"]
