"""Long sums: a kernel that adds them up rightly is not called wrong, and faults below a thousandth are found."""

from types import SimpleNamespace

import pytest
import torch

from nbkit.capture.diff.pair import rounds_once
from nbkit.capture.diff.rechecks.running_sums import LANES, norms
from nbkit.capture.replay.op_traits import traits_of
from nbkit.capture.replay.reference import Reference
from tests.capture.diff.planted import compared, only, with_fault

COUNT = 1 << 20


@pytest.mark.parametrize(
    ("op", "count", "step", "fault"),
    [
        ("sum.default", COUNT, torch.sum, lambda x: x[30:].sum()),
        ("linalg_vector_norm.default", COUNT, torch.linalg.vector_norm, lambda x: x.norm() * 1.0001),
        ("var.correction", 33_750, torch.var, lambda x: x.var(correction=0)),
        pytest.param("mean.default", COUNT, torch.mean, lambda x: x.mean() * 1.00003, marks=pytest.mark.full),
    ],
)
def test_faults_of_a_thirty_thousandth_are_found(op, count, step, fault):
    x = torch.rand(count)
    trace = with_fault(lambda: step(x), f"aten.{op}", lambda func, args, out: fault(x), ops=f"aten.{op}")
    assert only(trace)["status"] == "mismatch"
    assert only(compared(lambda: step(x), ops=f"aten.{op}"))["status"] == "ok"


@pytest.mark.parametrize("order", [2, pytest.param(1, marks=pytest.mark.full), pytest.param(3, marks=pytest.mark.full)])
def test_a_norm_that_is_one_running_sum_is_reduced_whatever_its_lanes(order):
    x = torch.full((COUNT,), 0.1)
    op = torch.ops.aten.linalg_vector_norm.default
    call = Reference("cpu:float64").copy(traits_of(op), (x, order), {})
    sums = list(norms(call, 0))
    assert len(sums) == len(LANES)
    assert abs(sums[0] / x.double().norm(order) - 1) > 2e-5
    for factor, status in ((1, "reduced"), (1.0001, "mismatch")):
        change = lambda func, args, out, factor=factor: (sums[0] * factor).float()  # noqa: E731
        assert only(with_fault(lambda: x.norm(order), str(op), change))["status"] == status


@pytest.mark.parametrize(("error", "status"), [(1e-5, "ok"), (2e-5, "reduced"), (4e-5, "mismatch")])
def test_a_long_product_may_be_as_wrong_as_one_running_sum_and_no_more(error, status):
    """Its factors have no more bits than bfloat16 holds, so that rounding them is no excuse."""
    left, right = torch.full((2, 8192), 1 + 2**-7), torch.full((8192, 2), 1 + 2**-7)
    total = 8192 * (1 + 2**-7) ** 2 * (1 + error)
    row = only(with_fault(lambda: left @ right, "aten.mm.default", lambda func, args, out: out.fill_(total)))
    assert row["status"] == status
    if status == "reduced":
        told = "as exact as one running sum in float32 of 8,192 numbers is, and no more; "
        assert row["message"].startswith(told)


HALVES = [torch.bfloat16, torch.float16]


def in_blocks(left, right, dtype):
    """A product whose sums of 16 terms are right, and are added up in half precision."""
    total = torch.zeros(len(left), right.shape[1])
    for start in range(0, len(right), 16):
        part = left[:, start : start + 16].float() @ right[start : start + 16].float()
        total = (total + part).to(dtype).float()
    return total.to(dtype)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("op", ["mm", "addmm"])
def test_a_product_accumulated_in_half_precision_is_found(op, dtype):
    left, right, bias = torch.randn(30, 4096).to(dtype), torch.randn(4096, 40).to(dtype), torch.zeros(40, dtype=dtype)
    step = (lambda: left @ right) if op == "mm" else (lambda: torch.addmm(bias, left, right))
    change = lambda func, args, out: in_blocks(left, right, dtype)  # noqa: E731
    row = only(with_fault(step, f"aten.{op}.default", change))
    assert row["status"] == "mismatch"
    right_row = only(compared(step))
    assert (right_row["status"], right_row["noise_ratio"] <= 2.1) == ("ok", True)


@pytest.mark.parametrize("dtype", HALVES)
def test_a_product_that_cancels_is_allowed_what_float32_rounds(dtype):
    half = torch.randn(5, 2000)
    left, right = torch.cat([half, half], 1).to(dtype), torch.cat([half, -half], 1).T.to(dtype)
    noise = 1e-4 * torch.randn(5, 5)
    row = only(with_fault(lambda: left @ right, "aten.mm.default", lambda func, args, out: noise.to(dtype)))
    assert row["status"] == "ok"


def test_cublas_may_add_in_half_precision_unless_told_otherwise():
    on_gpu = SimpleNamespace(dtype=torch.bfloat16, is_cuda=True)
    assert rounds_once(torch.ones(1, dtype=torch.bfloat16))
    assert not rounds_once(on_gpu)
    flag = "allow_bf16_reduced_precision_reduction"
    before = getattr(torch.backends.cuda.matmul, flag)
    setattr(torch.backends.cuda.matmul, flag, False)
    try:
        assert rounds_once(on_gpu)
    finally:
        setattr(torch.backends.cuda.matmul, flag, before)


@pytest.mark.full
def test_numbers_that_share_a_sum_may_be_as_wrong_as_it_is():
    """A batch norm over a million numbers adds them up one after the other, as torch's does: its output shows it."""
    x = torch.rand(COUNT, 1) + 10

    def change(func, args, out):
        wide = x.double()
        mean = wide.mean() * (1 + 5e-5)
        result = (wide - mean) / wide.var(correction=0).sqrt()
        return result.float(), out[1], out[2]

    step = lambda: torch.nn.functional.batch_norm(x, None, None, training=True)  # noqa: E731
    rows = with_fault(step, "aten.native_batch_norm.default", change).diffs
    assert rows["status"][0] == "reduced"
    x = torch.zeros(())
    assert only(compared(lambda: x.softmax(0)))["status"] == "ok"
