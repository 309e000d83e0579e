"""A call whose results are other values, not other roundings, where strides, batch or threads vary is an error."""

import pytest
import torch
from torch import nn

import nbkit


@torch.library.custom_op("nbkit_tests::turns_sign", mutates_args=())
def turns_sign(x: torch.Tensor) -> torch.Tensor:
    """A kernel that is wrong for inputs that do not lie in one piece."""
    return x * 2 if x.is_contiguous() else x * -2


@torch.library.custom_op("nbkit_tests::spoils_one", mutates_args=())
def spoils_one(x: torch.Tensor) -> torch.Tensor:
    """A kernel that leaves one small element out where inputs do not lie in one piece."""
    result = x.clone()
    if not x.is_contiguous():
        result[0, 1] = 0
    return result


def stable(function):
    with nbkit.opstable() as trace:
        function()
    return trace


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("is_contiguous", [True, False])
def test_a_sign_that_depends_on_strides_is_an_error(dtype, is_contiguous):
    x = torch.rand(4, 6, dtype=dtype)
    trace = stable(lambda: turns_sign(x if is_contiguous else x.mT))
    (finding,) = trace.findings.to_dict("records")
    assert (finding["rule"], finding["severity"]) == ("other_values", "error")
    assert "24 elements differ by up to 2 of the largest element" in finding["message"]
    assert finding["message"].endswith(" ULP), far beyond rounding")
    [far] = trace.stability["beyond_rounding"].dropna()
    assert finding["message"] == f"the same numbers give other values {far}"
    assert trace.brief().startswith("1 error.")
    assert "the bits of" not in trace.brief()


def test_one_small_element_of_large_ones_is_enough():
    x = torch.tensor([[1e6, 1.0, 2.0], [3.0, 4.0, 5.0]])
    assert stable(lambda: spoils_one(x)).findings["rule"].tolist() == ["other_values"]


def test_what_torch_itself_gives_with_crossed_bounds_is_judged_by_its_own_formula():
    x = torch.rand(4, 34)[:, :32]
    one, other = torch.special.logit(x, eps=0.6), torch.special.logit(x.contiguous(), eps=0.6)
    expected = [] if torch.equal(one, other) else ["other_values"]
    assert stable(lambda: torch.special.logit(x, eps=0.6)).findings["rule"].tolist() == expected


def test_sums_that_cancel_are_noise_in_any_order():
    x = torch.randn(64, 300)
    x = x - x.mean(1, keepdim=True)
    trace = stable(lambda: (x.sum(1), x.sum(), x @ torch.ones(300, 4)))
    assert trace.stability["max_ulp"].max() > 1e5  # other bits, all of them rounding
    assert not len(trace.findings)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_right_step_has_no_such_call(dtype):
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, dtype=dtype)
    x = torch.randn(3, 5, 16, dtype=dtype)
    assert not len(stable(lambda: model(x).log_softmax(-1).sum().backward()).findings)
