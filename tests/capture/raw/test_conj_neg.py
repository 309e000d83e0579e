"""A recorded step of complex numbers computes what the bare one does, though torch's modes forget a lazy conj()."""

from functools import partial

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import nbkit
from nbkit.capture.raw.conj_neg import CONJUGATE, NEGATIVE, as_bare

MATRIX, RIGHT = torch.randn(2, 3, 2, dtype=torch.complex64, generator=torch.Generator().manual_seed(0))
RECORDERS = {
    "optrace": nbkit.optrace,
    "optrace in Python": partial(nbkit.optrace, values="stats"),
    "opdiff": nbkit.opdiff,
    "opcheck": nbkit.opcheck,
}


class EmptyMode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def step():
    """Computes the pseudo-inverse, and a gradient that takes one in the backward pass."""
    leaf = MATRIX.clone().requires_grad_()
    torch.linalg.lstsq(leaf, RIGHT).solution.abs().sum().backward()
    return torch.linalg.pinv(MATRIX), leaf.grad


def test_torch_itself_forgets_it():
    with EmptyMode():
        assert not torch.allclose(torch.linalg.pinv(MATRIX).mH, torch.linalg.pinv(MATRIX.mH.contiguous()))
    assert torch.allclose(torch.linalg.pinv(MATRIX).mH, torch.linalg.pinv(MATRIX.mH.contiguous()), rtol=1e-4)


@pytest.mark.parametrize("verb", RECORDERS)
def test_the_recorded_step_computes_what_the_bare_one_does(verb):
    bare = step()
    with RECORDERS[verb]():
        recorded = step()
    # The last bits of LAPACK depend on where the memory lies, also in the bare step; a lost conj() is off by 0.1.
    torch.testing.assert_close(recorded, bare, rtol=1e-5, atol=1e-6)


def test_opdiff_finds_no_fault_in_it():
    with nbkit.opdiff() as trace:
        step()
    assert set(trace.diffs["status"]) == {"ok"}
    assert "aten.linalg_pinv.atol_rtol_tensor" in set(trace.diffs["op"])


def test_both_are_in_force_where_an_argument_is_complex():
    real, number = torch.ones(1), torch.ones(1, dtype=torch.complex64)
    excluded = torch._C._dispatch_tls_is_dispatch_key_excluded

    def run(*args, **kwargs):
        return excluded(CONJUGATE), excluded(NEGATIVE), len(args), sorted(kwargs)

    with torch._C._SetExcludeDispatchKeyGuard(CONJUGATE, True), torch._C._SetExcludeDispatchKeyGuard(NEGATIVE, True):
        assert as_bare(run, (real, 2j), {"out": real}) == (True, True, 2, ["out"])
        assert as_bare(run, (real, [real, (number,)]), {}) == (False, False, 2, [])
        assert as_bare(run, (real,), {"out": number}) == (False, False, 1, ["out"])
        assert as_bare(run, (real,), {}) == (True, True, 1, [])
        assert (excluded(CONJUGATE), excluded(NEGATIVE)) == (True, True)
