"""What stands against "the two agree": other arguments, ops of one side alone, values that were not kept."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

import nbkit

X = torch.randn(9, 8, generator=torch.Generator().manual_seed(2))


class Times(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return functional.gelu(x) * self.factor


def model(activation):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 64), activation, nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 4))


def said(both):
    """The sentences that stand first."""
    return " ".join(both.summary().split("\n\n")[0].split())


def test_other_arguments_that_rounding_hides_are_said():
    left, right = (nn.Sequential(nn.Linear(8, 64), nn.LayerNorm(64, eps=eps)).bfloat16() for eps in (1e-5, 1e-4))
    right.load_state_dict(left.state_dict())
    both = nbkit.opalign(left, right, inputs=(X.bfloat16(),))
    assert both.meta["first_divergence"] is None
    assert said(both).startswith("No difference beyond rounding was found: 10 of 10 results correspond. ")
    assert "has other arguments: eps is 1e-05 on the left, 0.0001 on the right" in said(both)


def test_an_op_of_one_side_that_rounding_hides_is_said():
    left = model(nn.GELU()).bfloat16()
    right = nn.Sequential(copy.deepcopy(left), Scaled(1.01)).bfloat16()
    both = nbkit.opalign(left, right, inputs=(X.bfloat16(),))
    assert both.meta["first_divergence"] is None
    assert said(both).startswith("The two agree as far as bfloat16 tells: ")
    assert "mul is on one side only and changes results by up to 0.0" in said(both)


class Scaled(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


def test_nothing_is_said_of_two_that_are_the_same():
    left = model(nn.GELU()).bfloat16()
    both = nbkit.opalign(left, copy.deepcopy(left), inputs=(X.bfloat16(),))
    assert (both.meta["doubts"], both.meta["one_sided"], both.meta["not_known"]) == ([], None, None)


@pytest.mark.parametrize(
    ("wrong", "first"), [(Times(1.001), "addmm_1"), (Times(1.0005), "gelu"), (nn.GELU(approximate="tanh"), "gelu")]
)
def test_values_that_were_not_kept_do_not_agree(wrong, first):
    both = nbkit.opalign(model(nn.GELU()), model(wrong), inputs=(X,), kept_bytes=0)
    assert both.meta["not_known"]["first"] == first
    assert "only statistics are known" in said(both)
    assert "their statistics differ by more than rounding in " in said(both)
    assert "give a larger kept_bytes" in said(both)
    rows = both.alignment.query("action == 'match'")
    assert set(rows["mark"]) == {"~"}
    assert rows["error_class"].isna().all()


def test_statistics_of_two_that_are_the_same_agree():
    both = nbkit.opalign(model(nn.GELU()), model(nn.GELU()), inputs=(X,), kept_bytes=0)
    assert said(both).startswith("16 of 16 results correspond: the values of 0 agree, and of 16 only statistics are ")
    assert "The values of 16 pairs are not known on both sides, and their statistics agree." in said(both)
    assert both.meta["not_known"] == {"results": 16, "differ": 0, "first": None, "error": None}


def test_no_place_is_claimed_behind_values_that_were_not_kept():
    wrong = nn.GELU(approximate="tanh")
    both = nbkit.opalign(model(nn.GELU()), model(wrong), inputs=(X,), kept_bytes=1000)
    found = both.meta["first_divergence"]
    assert (found["unknown"] > 0, found["kind"]) == (True, None)
    assert "reads the same" not in found["message"]
    assert f"any of the {found['unknown']} ops before it whose values were not kept" in found["message"]
    assert said(both).startswith("A difference shows at 4 (aten.addmm.default): ")


@pytest.mark.parametrize(
    "module", [nn.BatchNorm2d(3), nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3).eval()), nn.Dropout(0.5)]
)
def test_what_has_nothing_to_compare_agrees(module):
    x = torch.randn(2, 3, 4, 4)
    both = nbkit.opalign(module, copy.deepcopy(module), inputs=(x,))
    assert said(both).startswith("The two agree: ")
    assert set(both.alignment["mark"]) == {"="}


def test_a_trace_agrees_with_itself_also_in_results_without_elements():
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4).eval(), nn.ReLU())
    with nbkit.optrace(values="stats") as trace:
        module(torch.randn(2, 3, 8, 8))
    both = nbkit.opalign(trace, trace)
    assert "[0]" in both.alignment["shape"].tolist()
    assert set(both.alignment["mark"]) == {"="}
    assert said(both).startswith("The two agree: ")


@pytest.mark.parametrize(
    ("left", "right", "ends"),
    [
        (lambda x: {"y": x + 0, "n": 3}, lambda x: {"y": x + 0, "n": 4}, "['n'] is 3 on the left, 4 on the right"),
        (lambda x: x.sum().item() > -99, lambda x: x.sum().item() < -99, "is True on the left, False on the right"),
        (lambda x: x.sin().numpy(), lambda x: 2 * x.sin().numpy(), "the right: the arrays differ by up to 1"),
        (lambda x: "a", lambda x: "b", "is 'a' on the left, 'b' on the right"),
    ],
)
def test_what_is_returned_and_is_no_tensor_is_compared(left, right, ends):
    x = torch.full((4,), torch.pi / 2)
    both = nbkit.opalign(left, right, inputs=(x,))
    assert "agree" not in said(both) and ends in said(both)
    assert said(nbkit.opalign(left, left, inputs=(x,))).startswith("The two agree")


def test_ops_of_which_nothing_is_returned_are_compared_with_nothing():
    both = nbkit.opalign(lambda x: print(end=str(x.sin())[:0]), lambda x: print(end=str(x.cos())[:0]), inputs=(X,))
    assert "agree" not in said(both) and "Neither returns anything" in said(both)


def test_weights_in_half_precision_are_rounded_not_computed():
    left = nn.Linear(8, 9)
    right = copy.deepcopy(left).half().float()
    found = nbkit.opalign(left, right, inputs=(X,)).meta["first_divergence"]
    assert "is rounded to float16" in found["message"]


def test_a_buffer_that_a_cast_rounds_agrees():
    left, x = Scaled(1.0), X.bfloat16()
    left.register_buffer("eps", torch.tensor(1e-5))
    left.forward = lambda x: x + left.eps.to(x.dtype)
    right = Scaled(1.0)
    right.register_buffer("eps", torch.tensor(1e-5).bfloat16())
    right.forward = lambda x: x + right.eps
    assert said(nbkit.opalign(left, right, inputs=(x,))).startswith("The two agree")


def test_a_row_that_is_not_read_is_named():
    left, right = nn.Embedding(9, 4), nn.Embedding(9, 4)
    right.load_state_dict({"weight": left.weight + torch.eye(9)[8][:, None]})
    both = nbkit.opalign(left, right, inputs=(torch.arange(8),))
    assert "No output differs" in said(both) and "weight has other values, which changed nothing" in said(both)


class Normed(nn.Module):
    """An RMS norm as Gemma's, then a layer; `late` casts last, as Gemma does, else before it multiplies."""

    def __init__(self, late, axis=-1):
        super().__init__()
        self.linear, self.weight = nn.Linear(96, 8), nn.Parameter(torch.randn(96) * 0.3)
        self.late, self.axis = late, axis

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(self.axis, keepdim=True) + 1e-6)
        if self.late:
            return self.linear((y * (1 + self.weight.float())).to(x.dtype))
        return self.linear(y.to(x.dtype) * (1 + self.weight))


def normed(dtype, *forms):
    torch.manual_seed(4)
    models = [Normed(*form).to(dtype) for form in forms]
    models[1].load_state_dict(models[0].state_dict())
    return nbkit.opalign(*models, inputs=((torch.randn(4, 16, 96) * 3).to(dtype),))


@pytest.mark.parametrize(("early", "wide", "narrow"), [("right", (True,), (False,)), ("left", (False,), (True,))])
def test_a_cast_before_a_product_rounds_more_than_once(early, wide, narrow):
    both, late = normed(torch.bfloat16, wide, narrow), {"left": "right", "right": "left"}[early]
    what = f"The {late} side multiplies in float32 and casts then, the {early} one casts to bfloat16 first: mul_1 is up"
    assert both.meta["doubts"][0].startswith(what)
    assert both.meta["doubts"][0].endswith(" ulp off, more than one rounding (aten.mul.Tensor).")


@pytest.mark.parametrize(("dtype", "late"), [(torch.bfloat16, True), (torch.bfloat16, False), (torch.float32, False)])
def test_a_cast_in_the_same_place_and_an_axis_counted_from_the_end_are_the_same(dtype, late):
    assert normed(dtype, (late, -1), (late, 2)).meta["doubts"] == []


def test_one_rounding_less_in_a_fused_norm_is_the_same():
    class Fused(Normed):
        def forward(self, x):
            return self.linear(functional.rms_norm(x, (96,), self.weight, 1e-6))

    class InSteps(Normed):
        def forward(self, x):
            y = x.float()
            return self.linear(self.weight * (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype))

    torch.manual_seed(4)
    left, right = Fused(True).bfloat16(), InSteps(True).bfloat16()
    right.load_state_dict(left.state_dict())
    both = nbkit.opalign(left, right, inputs=((torch.randn(4, 16, 96) * 3).bfloat16(),))
    assert (both.meta["first_divergence"], both.meta["doubts"]) == (None, [])


def test_a_norm_that_a_convolution_took_in_is_no_difference():
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)
    model = nn.Sequential(*layers).eval()
    trace = nbkit.opalign(model, "onnxruntime", inputs=(torch.randn(2, 3, 16, 16),))
    assert trace.meta["first_divergence"] is None
    assert said(trace).startswith("No output differs beyond rounding: ")
    why = "1.weight and 3 more are folded into what the other side has."
    assert f"0.weight and 1 more have other values, which changed nothing with these inputs: {why}" in said(trace)
