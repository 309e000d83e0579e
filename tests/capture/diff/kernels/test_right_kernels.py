"""Kernels of torch that are right for what they may round: once called wrong, each with a fault that still is."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.capture.diff.planted import compared, with_fault, wrong


def attention_to_itself():
    """Each position sees itself alone, one sees nothing: gradients of queries and keys cancel to zero."""
    mask = torch.full((5, 5), -torch.inf).fill_diagonal_(0.0)
    mask[2] = -torch.inf
    q, k, v = (torch.randn(1, 2, 5, 8, requires_grad=True) for _ in range(3))
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        F.scaled_dot_product_attention(q, k, v, mask).square().sum().backward()


def test_a_mask_of_inf_leaves_attention_its_conditioning():
    torch.manual_seed(0)
    assert wrong(compared(attention_to_itself)).empty
    op = "aten._scaled_dot_product_flash_attention_for_cpu_backward.default"
    assert len(wrong(with_fault(attention_to_itself, op, lambda func, args, out: (out[0] + 1e-3, *out[1:])))) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_bounds_are_rounded_to_the_dtype_of_what_they_bound(dtype):
    x = torch.full((4,), 0.1, dtype=dtype, requires_grad=True)

    def step():
        (x.detach() <= 0.1, x.detach() == 0.1, x.detach() > 0.05, F.hardtanh(x, -0.1, 0.1).sum().backward())
        x.clamp(max=0.1).sum().backward()

    assert wrong(compared(step)).empty
    flipped = with_fault(step, "aten.gt.Scalar", lambda func, args, out: out.logical_not_())
    assert wrong(flipped)["op"].tolist() == ["aten.gt.Scalar"]


def test_a_running_variance_is_as_exact_as_its_momentum():
    norm, x = nn.BatchNorm2d(3, momentum=0.997), torch.randn(2, 3, 4, 4) * 0.05
    assert wrong(compared(lambda: norm(x))).empty

    def off(func, args, out):
        norm.running_var.mul_(1.003)
        return out

    rows = wrong(with_fault(lambda: norm(x), "aten.native_batch_norm.default", off))
    assert rows["position"].tolist() == [4]


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_resampling_is_as_exact_as_the_positions_it_reads(mode):
    torch.manual_seed(0)
    x = torch.rand(1, 1, 200, 200, requires_grad=True)

    def step():
        F.interpolate(x, size=(331, 331), mode=mode, align_corners=True).square().sum().backward()

    assert wrong(compared(step)).empty
    assert len(wrong(with_fault(step, f"aten.upsample_{mode}2d.default", lambda *call: call[2].mul_(1.001)))) == 1


def layer_norm():
    torch.manual_seed(0)
    norm, x = nn.LayerNorm(16), torch.randn(9, 16).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        F.layer_norm(x, (16,), norm.weight, norm.bias).float().square().sum().backward()


def test_float32_gradients_that_were_added_up_in_bfloat16_are_reduced_not_wrong():
    op = "aten.native_layer_norm_backward.default"
    rows = wrong(compared(layer_norm))
    assert set(zip(rows["op"], rows["dtype"], rows["status"], strict=True)) == {(op, "float32", "reduced")}
    assert rows["message"].str.startswith("computed in bfloat16, the dtype of its inputs").all()
    rows = wrong(with_fault(layer_norm, op, lambda func, args, out: (out[0], out[1] * 2, out[2])))
    assert rows["status"].tolist() == ["mismatch", "reduced"]


def test_a_norm_of_a_million_numbers_is_a_running_sum():
    x = [torch.full((1 << 20,), 0.1), torch.ones(3)]
    [row] = wrong(compared(lambda: torch._foreach_norm(x))).itertuples()
    assert (row.status, row.position) == ("reduced", 0)
    assert row.message.startswith("as exact as one running sum in float32 of 1,048,576 numbers is, and no more")
    off = with_fault(
        lambda: torch._foreach_norm(x), "aten._foreach_norm.Scalar", lambda *call: [call[2][0] * 1.001, call[2][1]]
    )
    assert wrong(off)["status"].tolist() == ["mismatch"]


def test_a_small_tensor_of_a_list_is_not_judged_by_the_size_of_the_large_one():
    x = [torch.ones(1 << 20), torch.ones(3)]
    off = with_fault(
        lambda: torch._foreach_norm(x), "aten._foreach_norm.Scalar", lambda *call: [call[2][0], call[2][1] * 1.00001]
    )
    assert wrong(off)["position"].tolist() == [1]


def test_nested_tensors_are_counted():
    parts = [torch.ones(2, 3), torch.ones(4, 3)]
    trace = compared(lambda: torch.nested.nested_tensor(parts).relu())
    assert wrong(trace).empty
    assert trace.meta["skipped"]["not compared: nested tensors, which have no one shape"] == 2


A, B = (torch.randn(6, 201, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
# Products that cancel to next to nothing.
LEFT, RIGHT = torch.cat([A, A], 1), torch.cat([B, -B], 1).T
CANCELLING = {
    "contiguous": lambda dtype: LEFT.to(dtype).mm(RIGHT.contiguous().to(dtype)),
    "transposed": lambda dtype: LEFT.to(dtype).mm(RIGHT.to(dtype)),
    "in place": lambda dtype: torch.zeros(6, 6, dtype=dtype).addmm_(LEFT.to(dtype), RIGHT.to(dtype)),
    "one tensor twice": lambda dtype: torch.stack([LEFT.to(dtype), -LEFT.to(dtype)]).sum((0, 2)),
    "a list": lambda dtype: torch.einsum("ij,kj->ik", LEFT.to(dtype), RIGHT.T.to(dtype)).sum(),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("work", CANCELLING)
def test_products_that_cancel(work, dtype):
    assert compared(lambda: CANCELLING[work](dtype)).meta["mismatches"] == 0


QUERY = torch.randn(1, 2, 9, 8, generator=torch.Generator().manual_seed(3))


def attention(dtype, scale):
    x = (QUERY * scale).to(dtype).requires_grad_()
    F.scaled_dot_product_attention(x, x, x).sum().backward()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("scale", [1.0, 8.0, float("nan")])
def test_attention(scale, dtype):
    trace = compared(lambda: attention(dtype, scale))
    assert trace.meta["mismatches"] == 0
    assert trace.diffs["op"].str.contains("flash_attention_for_cpu").sum() >= 2


def test_attention_with_dropout_is_not_run_again():
    trace = compared(lambda: F.scaled_dot_product_attention(QUERY, QUERY, QUERY, dropout_p=0.5))
    assert trace.meta["mismatches"] == 0


def test_a_mask_of_inf_and_lists_of_unlike_sizes():
    def step():
        x = QUERY.clone().requires_grad_()
        mask = torch.full((9, 9), -torch.inf).fill_diagonal_(0.0)
        F.scaled_dot_product_attention(x, x, x, mask).square().sum().backward()
        torch._foreach_norm([torch.full((1 << 16,), 0.1), torch.ones(3)])

    assert compared(step).meta["mismatches"] == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_an_image_whose_positions_are_in_half_precision_is_reduced(dtype):
    """Positions are read in the dtype of the grid, as grid_sample's kernels do."""
    image, grid = torch.randn(1, 3, 40, 40).to(dtype), (torch.rand(1, 30, 30, 2) * 1.8 - 0.9).to(dtype)

    def rounded(func, args, out):
        positions = ((args[1] + 1) * 40 - 1) / 2  # in half precision, each operation
        exact = (positions.double() * 2 + 1) / 40 - 1
        return F.grid_sample(args[0].double(), exact, align_corners=False).to(dtype)

    op = "aten.grid_sampler_2d.default"
    step = lambda: F.grid_sample(image, grid, align_corners=False)  # noqa: E731
    trace = with_fault(step, op, rounded, ops=op)
    assert trace.diffs["status"].tolist() == ["reduced"]
    assert trace.diffs["message"].str.contains("the dtype of its inputs").all()
    assert len(wrong(with_fault(step, op, lambda func, args, out: out.flip(3), ops=op))) == 1


def test_zeros_without_memory_are_zeros():
    trace = compared(lambda: torch.randn(3, dtype=torch.float64, requires_grad=True).sgn().sum().backward())
    assert "aten._efficientzerotensor.default" in set(trace.diffs["op"])
    assert set(trace.diffs["status"]) == {"ok"}
