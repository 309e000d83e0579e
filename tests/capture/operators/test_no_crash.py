"""Runs calls in which a kernel reads memory that only another has filled, or bits that are no elements."""

import subprocess

from tests.processes import PYTHON

CALLS = """
import torch, nbkit

def reduced(recorder, how):
    rows = torch.tensor([[0.0, 1, 2], [3, 0, 0], [0, 4, 5]]).to_sparse_csr().requires_grad_()
    x = torch.tensor([[1.0, -2], [3, 0.5], [-1, 4]], requires_grad=True)
    with recorder as trace:
        torch.sparse.mm(rows, x, how).sum().backward()
    return x.grad.tolist(), rows.grad.to_dense().tolist(), trace

for how in ("amax", "amin"):
    bare = reduced(nbkit.optrace(), how)
    for recorder in (nbkit.opfallback(), nbkit.opcast("float64")):
        *gradients, trace = reduced(recorder, how)
        print(gradients == [*bare[:2]], "aten._sparse_mm_reduce_impl_backward.default" in set(trace.replaced["op"]))
with nbkit.opstable() as trace:
    torch.quantize_per_tensor(torch.ones(8, 8), 0.1, 0, torch.qint8)
print(trace.meta["skipped"]["not run again: sparse and quantized tensors"], trace.stability["op"].tolist())
"""


def test_notes_for_backward_and_quantized_results_end_no_process():
    done = subprocess.run([*PYTHON, "-c", CALLS], capture_output=True, text=True, timeout=100)
    assert done.stdout.splitlines() == ["True True"] * 4 + ["1 ['aten.ones.default']"], done.stderr
