"""A kind of two small torch models is proved by values and by the arguments of ops, or it is not named."""

import math

import pytest
import torch
from torch.nn import functional

import nbkit

WIDTH = 16


def first_of(left, right, x):
    return nbkit.opalign(left, right, inputs=[x]).meta["first_divergence"]


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Net(torch.nn.Module):
    """A block with two norms of other weights, of which `change` says how it is written wrongly."""

    def __init__(self, change="", *, eps=1e-5, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.change, self.eps = change, eps
        self.embed, self.inner = torch.nn.Linear(6, WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.norm, self.last = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        for norm in (self.norm, self.last):
            torch.nn.init.normal_(norm.weight, 1, 0.3)
            torch.nn.init.normal_(norm.bias, 0, 0.3)

    def normed(self, x):
        weight, bias = self.norm.weight, self.norm.bias
        weights = {
            "one plus": (1 + weight, bias),
            "exchanged": (bias, weight),
            "other norm": (self.last.weight, self.last.bias),
            "no gain": (None, bias),
        }
        return functional.layer_norm(x, (WIDTH,), *weights.get(self.change, (weight, bias)), self.eps)

    def forward(self, x):
        x = self.embed(x)
        h = self.inner(functional.gelu(-self.normed(x) if self.change == "negated" else self.normed(x)))
        sums = {
            "half": lambda: x + 0.5 * h,
            "twice": lambda: x + 2 * h,
            "over root": lambda: (x + h) / math.sqrt(2),
            "left out": lambda: h,
            "added again": lambda: x + h + h,
        }
        return self.last(sums.get(self.change, lambda: x + h)())


@pytest.mark.parametrize("numbers", [(1e-12, 1e-5), (1e-5, 1e-6), (1e-5, 1e-12), (1e-5, 0.1), (0.0, 1e-5)])
@pytest.mark.parametrize("seed", range(3))
def test_epsilons_that_both_ops_tell_are_quoted(numbers, seed):
    sides = [torch.nn.LayerNorm(32, eps=eps) for eps in numbers]
    weights = {"weight": 1 + 0.2 * randn(32, seed=seed), "bias": 0.2 * randn(32, seed=seed + 9)}
    for side in sides:
        side.load_state_dict(weights)
    first = first_of(*sides, randn(17, 32, seed=seed))
    assert first["kind"] == "epsilon"
    texts = [f"{number:.6g}" for number in numbers]
    assert first["message"].endswith(f"The norm has epsilon {texts[0]} on the left, {texts[1]} on the right.")


def normed(how, eps):
    """Returns a layer norm without weights, written as `how` says."""

    def run(x):
        centered = x.sin() - x.sin().mean(-1, keepdim=True)
        variance = centered.square().mean(-1, keepdim=True)
        if how == "to the root":
            return centered / (variance.sqrt() + eps)
        if how == "hidden":
            return centered * torch.rsqrt(variance + torch.full_like(variance, eps))
        return centered * torch.rsqrt(variance + eps)

    return run


def fused(eps):
    return lambda x: functional.layer_norm(x.sin(), (x.shape[-1],), None, None, eps)


@pytest.mark.parametrize("eps", [1e-6, 1e-12])
@pytest.mark.parametrize("size", [1.0, 0.1])
def test_an_epsilon_that_one_side_writes_out_is_quoted(eps, size):
    first = first_of(fused(1e-5), normed("before the root", eps), size * randn(17, 32))
    assert (first["kind"], first["message"].rpartition(". ")[2]) == (
        "epsilon",
        f"The norm has epsilon 1e-05 on the left, {eps:.6g} on the right.",
    )


@pytest.mark.parametrize("size", [1.0, 0.1])
def test_an_epsilon_that_no_values_tell_gets_no_number(size):
    first = first_of(fused(1e-5), normed("hidden", 1e-12), size * randn(17, 32))
    assert first["kind"] == "epsilon"
    assert first["message"].endswith("The norm has epsilon 1e-05 on the left, a smaller one on the right.")


@pytest.mark.parametrize("size", [0.1, 1.0, 3.0])
def test_an_epsilon_outside_the_root_is_named(size):
    torch.manual_seed(0)
    linear = torch.nn.Linear(WIDTH, WIDTH)

    def net(is_outside):
        def run(x):
            x = linear(x)
            square = x.square().mean(-1, keepdim=True)
            return linear(x / (square.sqrt() + 1e-5) if is_outside else x * torch.rsqrt(square + 1e-5))

        return run

    first = first_of(net(False), net(True), size * randn(2, 9, WIDTH))
    assert first["kind"] == "epsilon"
    text = "The norm adds epsilon 1e-05 before it takes the root on the left, 1e-05 to the root on the right."
    assert first["message"].endswith(text)


@pytest.mark.parametrize("shape", [(4, 7, 6), (5, 6)])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("one plus", "The right one multiplies each channel by 1 + norm.weight, the left one by norm.weight."),
        ("exchanged", "The right one multiplies by norm.bias and adds norm.weight, the left one does the reverse."),
        (
            "other norm",
            "The right one multiplies each channel by last.weight, the left one by norm.weight; "
            "the right one adds last.bias, the left one norm.bias.",
        ),
        ("no gain", "The right one lacks the gain norm.weight."),
    ],
)
def test_another_gain_is_no_missing_residual(shape, change, message):
    for seed in range(2):
        first = first_of(Net(seed=seed), Net(change, seed=seed), randn(*shape, seed=seed))
        assert first["kind"] == "other_weights" and first["kind_explained"] < 1e-3
        assert first["message"].endswith(message)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("half", "is 0.5 times the left one's view_"),
        ("twice", "is 2 times the left one's view_"),
        ("over root", "The right one's div is 0.707107 times the left one's add_1."),
        ("negated", "The right one's neg is -1 times the left one's native_layer_norm"),
    ],
)
def test_what_is_scaled_before_an_op_is_no_missing_residual_and_no_epsilon(change, text):
    first = first_of(Net(), Net(change), randn(4, 7, 6))
    assert first["kind"] == "scale" and first["kind_explained"] < 1e-3
    assert text in first["message"]


def test_a_residual_that_is_missing_is_named_still():
    first = first_of(Net(), Net("left out"), randn(4, 7, 6))
    assert first["kind"] == "missing_residual"
    assert first["message"].endswith("The right one lacks the residual view_1, which the left one adds.")


def test_what_is_added_twice_is_not_said_to_be_missing():
    first = first_of(Net(), Net("added again"), randn(4, 7, 6))
    assert first["message"].endswith("The right one adds view_3 once more than the left one.")


@pytest.mark.parametrize("is_hidden", [True, False])
def test_a_scale_before_an_additive_mask_is_no_infinity(is_hidden):
    mask = torch.full((6, 6), -math.inf).triu(1)
    torch.manual_seed(0)
    query, key = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)

    def attention(*factors):
        def run(x):
            scores = query(x) @ key(x).mT
            for factor in factors:
                scores = scores * factor
            return (scores + mask).softmax(-1) @ x

        return run

    right = attention() if is_hidden else attention(0.25, 0.5)
    first = first_of(attention(0.25), right, randn(2, 6, WIDTH))
    assert (first["kind"], first["left"]["name"]) == ("scale", "mul" if is_hidden else "add")
    assert f"is {'4' if is_hidden else '0.5'} times the left one's mul" in first["message"]


def test_a_truth_value_that_alone_differs_is_named():
    def upsampled(align_corners):
        return lambda x: functional.interpolate(x.sin(), scale_factor=2, mode="bilinear", align_corners=align_corners)

    first = first_of(upsampled(False), upsampled(True), randn(2, 3, 5, 5))
    assert first["kind"] == "argument"
    text = "The argument align_corners of aten.upsample_bilinear2d.default is False on the left, True on the right."
    assert first["message"].endswith(text)


def test_statistics_of_the_batch_are_told_by_their_argument():
    state = {"running_mean": randn(8), "running_var": 1 + randn(8, seed=1).square()}

    def normalized(is_training):
        return lambda x: functional.batch_norm(x.sin(), *(one.clone() for one in state.values()), training=is_training)

    first = first_of(normalized(False), normalized(True), randn(6, 8))
    assert first["kind"] == "argument"
    assert first["message"].endswith("batch_norm.default is False on the left, True on the right.")
    assert "The argument training of " in first["message"]


def test_a_text_that_alone_differs_is_named_where_nothing_else_is():
    def padded(lengths):
        return lambda x: functional.pad(x.sin(), lengths) * 2

    first = first_of(padded((1, 0)), padded((0, 1)), randn(4, 8))
    assert first["kind"] == "argument"
    assert "is [1, 0] on the left, [0, 1] on the right." in first["message"]


class Embedded(torch.nn.Module):
    def __init__(self, factor=None):
        super().__init__()
        torch.manual_seed(0)
        self.tokens, self.inner, self.factor = torch.nn.Embedding(97, 64), torch.nn.Linear(64, 64), factor

    def forward(self, ids):
        x = self.tokens(ids) if self.factor is None else self.tokens(ids) * self.factor
        return self.inner(x.tanh())


def test_an_embedding_that_is_scaled_is_named_where_it_is_read():
    first = first_of(Embedded(), Embedded(8), torch.arange(18).reshape(2, 9))
    assert first["kind"] == "scale"
    assert first["message"].endswith("The right one's mul is 8 times the left one's embedding, sqrt(64).")


def test_a_number_that_is_added_to_what_is_no_variance_is_no_epsilon():
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(6, WIDTH), torch.nn.GELU(), torch.nn.Linear(WIDTH, 8)).bfloat16()
    first = first_of(layers, lambda x: layers(x) + 0.005, randn(9, 6).bfloat16())
    assert first is not None
    assert first["kind"] != "epsilon"
