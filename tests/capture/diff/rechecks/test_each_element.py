"""Small elements beside large ones are judged by their own size, in ops that leave them well determined."""

import pytest
import torch

from tests.capture.diff.planted import compared, only, with_fault

STEPS = {
    "mul.Tensor": lambda x: x * x,
    "div.Tensor": lambda x: x / 3.0,
    "_softmax.default": lambda x: (60 * x).softmax(0),
    "sigmoid.default": lambda x: (60 * x).sigmoid(),
    "index_select.default": lambda x: x.index_select(0, torch.arange(500)),
}
DTYPES = [torch.float32, torch.bfloat16]


def values(dtype):
    """Numbers from 1 to 1e-12, of both signs."""
    torch.manual_seed(0)
    return (torch.randn(1000) * 10.0 ** torch.linspace(0, -12, 1000)).to(dtype)


def flushed(func, args, out):
    scale = out.double().square().mean().sqrt()
    return torch.where(out.double().abs() < 1e-6 * scale, 0, out).to(out.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", STEPS)
def test_what_is_below_a_millionth_and_set_to_zero_is_found(op, dtype):
    x = values(dtype) if op != "_softmax.default" else values(dtype).abs().neg() * 10
    row = only(compared(lambda: STEPS[op](x), ops=f"aten.{op}"))
    assert row["status"] == "ok"
    row = only(with_fault(lambda: STEPS[op](x), f"aten.{op}", flushed, ops=f"aten.{op}"))
    assert row["status"] == "mismatch"
    assert ": 0, expected " in row["message"]
    assert row["noise_ratio"] > 100


@pytest.mark.parametrize("number", [0.1, torch.tensor(0.1, dtype=torch.float64)], ids=["number", "tensor"])
@pytest.mark.parametrize("dtype", [*DTYPES, torch.float16])
def test_numbers_that_are_rounded_to_the_dtype_and_cancel_are_right(dtype, number):
    x = torch.tensor([0.1, 1.0, 3.0, 0.2], dtype=dtype)
    rounded = torch.tensor(0.1, dtype=dtype)
    step = lambda: x - number  # noqa: E731
    assert only(compared(step))["status"] == "ok"
    assert only(with_fault(step, "aten.sub.Tensor", lambda func, args, out: x - rounded))["status"] == "ok"


def test_numbers_near_the_smallest_may_be_zero():
    x = torch.tensor([1.0, 1e-37, -1e-40])
    row = only(with_fault(lambda: x * 1.0, "aten.mul.Tensor", lambda func, args, out: torch.where(x.abs() < 0.5, 0, x)))
    assert row["status"] == "ok"


def test_what_cancels_inside_is_judged_by_its_tensor():
    x = torch.linspace(-6, 6, 1000)
    assert only(compared(lambda: torch.nn.functional.gelu(x)))["status"] == "ok"
    assert set(compared(lambda: (x * 9).log_softmax(0)).diffs["status"]) == {"ok"}
