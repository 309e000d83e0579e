"""float32 products that a device computes from fewer bits are called that, and nothing else is."""

import pytest
import torch
import torch.nn.functional as F

from tests.capture.diff.planted import only, with_fault, wrong
from tests.capture.models import train_step


def truncated(values, bits=10):
    return (values.view(torch.int32) & -(1 << 23 - bits)).view(torch.float32)


def nearest(values, bits=10):
    """To even where two are as near."""
    mantissa, exponent = values.double().frexp()
    return (mantissa * 2 ** (bits + 1)).round().ldexp(exponent - bits - 1).float()


def from_fewer_bits(round_to, factors, bits):
    def change(func, args, out):
        chosen = [round_to(arg, bits) if place in factors else arg for place, arg in enumerate(args)]
        return func(*chosen)

    return change


PRODUCTS = {
    "mm.default": (lambda: torch.randn(40, 300) @ torch.randn(300, 50), (0, 1)),
    "bmm.default": (lambda: torch.randn(2, 40, 300) @ torch.randn(2, 300, 50), (0, 1)),
    "addmm.default": (lambda: F.linear(torch.randn(40, 300), torch.randn(50, 300), torch.randn(50)), (1, 2)),
    "convolution.default": (lambda: F.conv2d(torch.randn(2, 8, 16, 16), torch.randn(8, 8, 3, 3)), (0, 1)),
}


@pytest.mark.parametrize(("bits", "name"), [(10, "TF32"), (7, "bfloat16")])
@pytest.mark.parametrize("round_to", [nearest, truncated])
@pytest.mark.parametrize("op", PRODUCTS)
def test_a_product_of_fewer_bits_is_reduced_not_wrong(op, round_to, bits, name):
    step, factors = PRODUCTS[op]
    trace = with_fault(step, f"aten.{op}", from_fewer_bits(round_to, factors, bits), ops=f"aten.{op}")
    row = only(trace)
    assert row["status"] == "reduced"
    assert row["message"].startswith(f"float32 computed as {name}")
    assert row["noise_ratio"] > 8
    assert trace.meta["mismatches"] == 0


def test_gradients_of_a_convolution_of_fewer_bits():
    def step():
        weight = torch.randn(8, 8, 3, 3, requires_grad=True)
        F.conv2d(torch.randn(2, 8, 16, 16, requires_grad=True), weight).sin().sum().backward()

    op = "aten.convolution_backward.default"
    trace = with_fault(step, op, from_fewer_bits(truncated, (0, 1, 2), 10), ops=op)
    assert set(trace.diffs["status"]) == {"reduced"}


@pytest.mark.parametrize("model", ["llama", "rwkv4"])
def test_all_else_of_a_step_stays_ok(model):
    trace = with_fault(train_step(model), "aten.mm.default", from_fewer_bits(truncated, (0, 1), 10), call=2)
    assert wrong(trace)["status"].tolist() == ["reduced"]


def test_one_wrong_element_beside_fewer_bits_is_a_mismatch():
    def change(func, args, out):
        out = func(truncated(args[0]), truncated(args[1]))
        out[3, 4] += out.abs().max()
        return out

    row = only(with_fault(PRODUCTS["mm.default"][0], "aten.mm.default", change, ops="aten.mm"))
    assert (row["status"], row["message"].startswith("worst at [3, 4]")) == ("mismatch", True)


def test_an_error_of_the_size_of_fewer_bits_is_a_mismatch_that_says_so():
    def change(func, args, out):
        return out + torch.randn_like(out) * (func(truncated(args[0]), truncated(args[1])) - out).std()

    row = only(with_fault(PRODUCTS["mm.default"][0], "aten.mm.default", change, ops="aten.mm"))
    assert (row["status"], row["message"].partition("(")[0]) == ("mismatch", "no further off than TF32 would be ")


def test_an_op_that_is_no_product_is_not_tried():
    def change(func, args, out):
        return truncated(out)

    row = only(with_fault(lambda: torch.randn(50).exp(), "aten.exp.default", change, ops="aten.exp"))
    assert row["status"] == "mismatch"


def test_complex_products_of_fewer_bits():
    def change(func, args, out):
        return func(*(torch.view_as_complex(truncated(torch.view_as_real(arg))) for arg in args))

    x, y = torch.randn(40, 300, dtype=torch.complex64), torch.randn(300, 50, dtype=torch.complex64)
    assert only(with_fault(lambda: x @ y, "aten.mm.default", change))["status"] == "reduced"
