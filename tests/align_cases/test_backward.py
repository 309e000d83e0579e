"""opalign with backward=True: other layouts and dtypes have no divergence, and wrong gradients are named."""

import copy
import warnings
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import nbkit
from tests.align_cases.ports import PORTS

WIDTH, HEADS = 16, 2
X = torch.randn(2, 5, WIDTH, generator=torch.Generator().manual_seed(1))
# Gradients of decode_static cannot be computed, the exported programs have none, and a row of BERT's is zero: padding.
NO_PAIR = ("decode_static", "decompositions", "gpt2_decompositions", "bert_own")


def first(left: nn.Module, right: nn.Module, inputs, right_inputs=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace = nbkit.opalign(left, right, inputs=inputs, right_inputs=right_inputs, backward=True)
    assert not trace.meta["error"]
    return trace.meta["first_divergence"]


@pytest.mark.parametrize("name", [name for name in PORTS if name not in NO_PAIR])
def test_the_gradients_of_a_port_have_no_divergence(name):
    port = PORTS[name]()
    assert first(port.left.requires_grad_(True), port.right.requires_grad_(True), port.inputs) is None


class Wrong(torch.autograd.Function):
    """Passes a tensor on; its gradient is changed."""

    @staticmethod
    def forward(ctx, value, change):
        ctx.change = change
        return value.clone()

    @staticmethod
    def backward(ctx, gradient):
        return ctx.change(gradient), None


def scaled(gradient: Tensor) -> Tensor:
    return gradient * 1.01


def without_half(gradient: Tensor) -> Tensor:
    """A sum over half of the keys."""
    return torch.cat([torch.zeros_like(gradient[..., ::2]), gradient[..., 1::2]], -1)


class Attention(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        heads = [each.unflatten(-1, (HEADS, -1)).transpose(1, 2) for each in self.projected(x)]
        scores = heads[0] @ heads[1].transpose(-1, -2) * heads[0].shape[-1] ** -0.5
        return self.o((scores.softmax(-1) @ heads[2]).transpose(1, 2).flatten(2))


class Fused(Attention):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def projected(self, x: Tensor) -> tuple[Tensor, ...]:
        return self.qkv(x).chunk(3, -1)


class Projection(nn.Linear):
    """The gradient of its `wrong` is scaled: its weight's, its bias's or that of what it gives."""

    wrong = ""

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = self.given("weight", self.weight), self.given("bias", self.bias)
        return self.given("output", F.linear(x, weight, bias))

    def given(self, name: str, value: Tensor) -> Tensor:
        return Wrong.apply(value, scaled) if name == self.wrong else value


class Split(Attention):
    """Has the weights of a fused one."""

    def __init__(self, fused: Fused) -> None:
        super().__init__()
        self.o = copy.deepcopy(fused.o)
        self.q, self.k, self.v = (Projection(WIDTH, WIDTH) for _ in range(3))
        for name in ("weight", "bias"):
            for own, part in zip((self.q, self.k, self.v), getattr(fused.qkv, name).chunk(3), strict=True):
                getattr(own, name).data.copy_(part)

    def projected(self, x: Tensor) -> list[Tensor]:
        return [self.q(x), self.k(x), self.v(x)]


def fused(bias: float = 1.0) -> Fused:
    torch.manual_seed(0)
    made = Fused()
    made.qkv.bias.data *= bias
    return made


@pytest.mark.parametrize("bias", [0.0, 1.0])
@pytest.mark.parametrize("dtypes", [("float32", "float32"), ("bfloat16", "bfloat16"), ("float32", "bfloat16")])
def test_a_fused_projection_has_the_gradients_of_split_ones(dtypes, bias):
    whole = fused(bias)
    parts = Split(whole)
    kinds = [getattr(torch, name) for name in dtypes]
    for left, right in ((whole, parts), (parts, whole)):
        sides = [copy.deepcopy(side).to(kind) for side, kind in zip((left, right), kinds, strict=True)]
        assert first(*sides, (X.to(kinds[0]),), (X.to(kinds[1]),)) is None


@pytest.mark.parametrize("path", ["q.weight", "k.weight", "v.weight", "q.bias", "v.bias"])
def test_a_wrong_gradient_of_one_weight_is_named(path):
    name, _, wrong = path.partition(".")
    parts = Split(fused())
    getattr(parts, name).wrong = wrong
    for sides, side in (((fused(), parts), "right"), ((parts, fused()), "left")):
        assert first(*sides, (X,))[side]["module"] == name


@pytest.mark.parametrize("name", ["q", "k", "v"])
def test_a_wrong_gradient_of_what_a_projection_gives_is_found(name):
    parts = Split(fused())
    getattr(parts, name).wrong = "output"
    assert first(fused(), parts, (X,)) and first(parts, fused(), (X,))


def changed(compute, change, *given, **named) -> Tensor:
    return Wrong.apply(compute(*given, **named), change)


def t5(change=None) -> nn.Module:
    """Returns a T5, the gradient of whose position biases is changed."""
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    sizes = {"vocab_size": 97, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
    model = T5ForConditionalGeneration(T5Config(**sizes, decoder_start_token_id=0)).eval()
    for stack in (model.encoder, model.decoder) if change else ():
        attention = stack.block[0].layer[0].SelfAttention
        attention.compute_bias = partial(changed, attention.compute_bias, change)
    return model


TOKENS = torch.randint(3, 97, (2, 17), generator=torch.Generator().manual_seed(1))
TEXT = {"input_ids": TOKENS, "labels": TOKENS}


def test_a_t5_in_bfloat16_has_the_gradients_of_one_in_float32():
    assert first(t5(), t5().to(torch.bfloat16), TEXT) is None
    assert first(t5().to(torch.bfloat16), t5(), TEXT) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_wrong_gradient_of_the_position_bias_is_named(dtype):
    found = first(t5(), t5(without_half).to(dtype), TEXT)
    assert found["right"]["module"] == "decoder.block.0.layer.0.SelfAttention"
