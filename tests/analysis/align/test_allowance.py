"""What rounding allows in bfloat16 and float16: right ports stay clean, and a wrong number is found."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

import nbkit

NARROW = [torch.bfloat16, torch.float16]


class Block(nn.Module):
    """A residual block; `scale` is of its branch, `eps` of its norm; `by_hand` makes norm and activation of steps."""

    def __init__(self, scale=1.0, eps=1e-5, by_hand=False):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(32, eps=eps), nn.Linear(32, 128), nn.Linear(128, 32)
        self.scale, self.by_hand = scale, by_hand

    def forward(self, x):
        up = self.up(self.normed(x) if self.by_hand else self.norm(x))
        branch = self.down(up * torch.sigmoid(up) if self.by_hand else functional.silu(up))
        return x + (branch if self.scale == 1 else self.scale * branch)

    def normed(self, x):
        centered = x - x.mean(-1, keepdim=True)
        variance = centered.pow(2).mean(-1, keepdim=True)
        return centered * torch.rsqrt(variance + self.norm.eps) * self.norm.weight + self.norm.bias


def net(dtype, **of_second):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 32), Block(), Block(**of_second), nn.Linear(32, 8)).to(dtype)


def inputs(dtype):
    return (torch.randn(4, 16, 8, generator=torch.Generator().manual_seed(1)).to(dtype),)


def first(dtype, **of_second):
    return nbkit.opalign(net(dtype), net(dtype, **of_second), inputs=inputs(dtype)).meta["first_divergence"]


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("scale", [0.9, 0.95])
def test_a_branch_times_another_number_is_found(dtype, scale):
    found = first(dtype, scale=scale)
    assert (found["kind"], found["right"]["name"]) == ("scale", "mul")


@pytest.mark.parametrize(("dtype", "eps"), [(torch.bfloat16, 0.1), (torch.bfloat16, 0.01), (torch.float16, 0.01)])
def test_another_epsilon_is_found(dtype, eps):
    assert first(dtype, eps=eps)["right"]["name"] == "native_layer_norm_1[0]"


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("is_left", [False, True])
def test_what_is_computed_in_other_steps_agrees(dtype, is_left):
    pair = [net(dtype), net(dtype, by_hand=True)]
    both = nbkit.opalign(*(pair[::-1] if is_left else pair), inputs=inputs(dtype))
    assert both.meta["first_divergence"] is None
    assert not (both.alignment["mark"] == "~").any()
    assert both.alignment["local_error"].max() > 0


@pytest.mark.parametrize("dtype", NARROW)
def test_attention_in_steps_agrees_with_the_fused_one_also_where_scores_are_large(dtype):
    class Attention(nn.Module):
        def __init__(self, fused):
            super().__init__()
            self.qkv, self.fused = nn.Linear(32, 96), fused

        def forward(self, x):
            q, k, v = (part.unflatten(-1, (4, 8)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
            if self.fused:
                return functional.scaled_dot_product_attention(q, k, v)
            return (q @ k.transpose(-1, -2) / 8**0.5).softmax(-1) @ v

    torch.manual_seed(0)
    left = Attention(fused=True).to(dtype)
    nn.init.normal_(left.qkv.weight, std=1.0)
    right = Attention(fused=False).to(dtype)
    right.load_state_dict(left.state_dict())
    x = torch.randn(2, 12, 32).to(dtype)
    for pair in ((left, right), (right, left)):
        assert nbkit.opalign(*pair, inputs=(x,)).meta["first_divergence"] is None


def test_a_weight_that_is_more_than_a_rounding_off_is_found():
    left = net(torch.bfloat16)
    right = copy.deepcopy(left)
    right[1].down.weight.data.mul_(1.02)
    found = nbkit.opalign(left, right, inputs=inputs(torch.bfloat16)).meta["first_divergence"]
    assert found["right"]["name"] == "1.down.weight"


def test_an_op_is_allowed_one_rounding_for_each_step():
    both = nbkit.opalign(net(torch.bfloat16), net(torch.bfloat16), inputs=inputs(torch.bfloat16))
    allowed = both.alignment.query("name == 'add_1'")["allowed_error"].item()
    assert allowed == pytest.approx(2**0.5 * 2**-7)


def test_kernels_of_the_backward_pass_may_add_up_in_their_dtype():
    pair = net(torch.bfloat16), net(torch.bfloat16, by_hand=True)
    both = nbkit.opalign(*pair, inputs=inputs(torch.bfloat16), backward=True)
    assert both.meta["first_divergence"] is None
    assert (both.alignment["phase"] == "backward").any()


class Moved(nn.Module):
    """A linear layer, and behind it steps that move numbers and round none; `factor` is of the first channel."""

    def __init__(self, factor):
        super().__init__()
        self.linear, self.factor = nn.Linear(32, 4), factor

    def forward(self, x):
        y = self.linear(x)
        if self.factor is None:
            return y
        first = (y[..., :1].transpose(0, 1).contiguous() * self.factor).transpose(0, 1)
        return torch.cat([first, y[..., 1:2], y[..., 2:].flip(-1).flip(-1)], -1)


@pytest.mark.parametrize(("dtype", "eps"), [(torch.bfloat16, 2.0**-7), (torch.float32, 16 * 2.0**-23)])
def test_steps_that_round_nothing_allow_nothing(dtype, eps):
    torch.manual_seed(0)
    plain, moved = Moved(None).to(dtype), Moved(1.0).to(dtype)
    moved.load_state_dict(plain.state_dict())
    x = torch.randn(3, 20, 32).to(dtype)
    y = plain(x).float()
    # As 2-norms: twice what one rounding for each side is allowed, where eight steps stand between.
    moved.factor = 1 + 2 * 2**0.5 * eps * (y.norm() / y[..., 0].norm()).item()
    assert nbkit.opalign(plain, moved, inputs=(x,)).meta["first_divergence"] is not None
    moved.factor = 1.0
    assert nbkit.opalign(plain, moved, inputs=(x,)).meta["first_divergence"] is None
