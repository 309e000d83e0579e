"""Two recordings of one step that compute it in other ways: they agree where what comes of them does, and part else."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import nbkit
from tests.capture.diff.planted import Planted, scaled
from tests.capture.models import record

ROOT = math.sqrt(2 / math.pi)


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Norm(nn.Module):
    """A LayerNorm: the op of PyTorch, or by hand with a root or its inverse."""

    def __init__(self, way, eps=1e-5):
        super().__init__()
        self.weight, self.bias, self.way, self.eps = (
            nn.Parameter(torch.ones(16)),
            nn.Parameter(torch.ones(16)),
            way,
            eps,
        )

    def forward(self, x):
        if self.way == "op":
            return F.layer_norm(x, (16,), self.weight, self.bias, self.eps)
        centered, variance = x - x.mean(-1, keepdim=True), x.var(-1, unbiased=False, keepdim=True) + self.eps
        scaled_x = centered * variance.rsqrt() if self.way == "inverse" else centered / variance.sqrt()
        return scaled_x * self.weight + self.bias


class Attention(nn.Module):
    """Causal attention: eager, with the scale before the product, with a softmax by hand, or by one op."""

    def __init__(self, way, scale=8**-0.5):
        super().__init__()
        self.qkv, self.out, self.way, self.scale = nn.Linear(16, 48), nn.Linear(16, 16), way, scale

    def forward(self, x):
        query, key, value = (part.unflatten(-1, (2, 8)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        if self.way == "op":
            heads = F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=self.scale)
        else:
            scores = query * self.scale @ key.mT if self.way == "scaled" else query @ key.mT * self.scale
            scores = scores.masked_fill(~torch.ones(8, 8).tril().bool(), -torch.inf)
            heads = (self.by_hand(scores) if self.way == "hand" else scores.softmax(-1)) @ value
        return x + self.out(heads.transpose(1, 2).flatten(2))

    @staticmethod
    def by_hand(scores):
        exponentials = (scores - scores.amax(-1, keepdim=True)).exp()
        return exponentials / exponentials.sum(-1, keepdim=True)


def two_layers(way, shape=(12, 16)):
    """The trace of a training step of two linear layers with `way` between them."""
    return recorded(lambda: nn.Sequential(nn.Linear(16, 16), way(), nn.Linear(16, 4)), shape)


def recorded(model_of, shape, run=lambda model, x: model(x), backward=True):
    torch.manual_seed(0)
    model, x = model_of(), torch.randn(shape)

    def step():
        loss = run(model, x).square().mean()
        if backward:
            loss.backward()

    return record(step, values="stats")


def normed(way, eps=1e-5):
    return two_layers(lambda: Norm(way, eps))


def activated(function):
    return two_layers(lambda: Function(function))


def attending(way, scale=8**-0.5, backward=True):
    layers = lambda: nn.Sequential(Attention(way, scale), nn.LayerNorm(16), Attention(way, scale))  # noqa: E731
    return recorded(layers, (2, 8, 16), backward=backward)


def checkpointed(count, eps=1e-5):
    """The trace of a step that computes its first `count` modules again in its backward pass."""
    layers = lambda: nn.Sequential(  # noqa: E731
        nn.Linear(16, 16), nn.LayerNorm(16, eps), nn.GELU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)
    )

    def run(model, x):
        return model[count:](checkpoint(model[:count], x, use_reentrant=False)) if count else model(x)

    return recorded(layers, (12, 16), run)


def first_of(left, right):
    return nbkit.compare_values(left, right).attrs["first_divergence"]


EQUAL = {
    "checkpoint": lambda: (checkpointed(0), checkpointed(3)),
    "other checkpoints": lambda: (checkpointed(2), checkpointed(4)),
    "norm by hand": lambda: (normed("op"), normed("inverse")),
    "two norms by hand": lambda: (normed("inverse"), normed("root")),
    "tanh": lambda: (activated(torch.tanh), activated(lambda x: 2 * torch.sigmoid(2 * x) - 1)),
    "scale": lambda: (attending("eager"), attending("scaled")),
    "softmax": lambda: (attending("eager"), attending("hand")),
    "attention": lambda: (attending("eager"), attending("op")),
    "attention forward": lambda: (attending("eager", backward=False), attending("op", backward=False)),
}


@pytest.mark.parametrize("name", EQUAL)
def test_other_ways_to_the_same_are_no_divergence(name):
    sides = EQUAL[name]()
    for left, right in (sides, reversed(sides)):
        found = nbkit.compare_values(left, right)
        assert found.attrs["first_divergence"] is None
        assert set(found["error_class"].dropna()) == {"clean"}
        assert {"left_only", "right_only"} & set(found["action"])  # else it is the same way
        aligned = nbkit.opalign(left, right)
        assert aligned.meta["first_divergence"] is None
        assert "The two agree" in aligned.brief()


DIFFERENT = {
    "norm by hand": (lambda: (normed("op"), normed("inverse", 1e-3)), "1", "forward"),
    "two norms by hand": (lambda: (normed("inverse", 1e-3), normed("root")), "1", "forward"),
    "gelu by hand": (
        lambda: (
            activated(F.gelu),
            activated(lambda x: 0.5 * x * (1 + torch.tanh(ROOT * (x + 0.044715 * x**3)))),
        ),
        "1",
        "forward",
    ),
    "attention": (lambda: (attending("op"), attending("eager", 0.25)), "0", "forward"),
    "attention forward": (
        lambda: (attending("op", backward=False), attending("hand", 0.25, backward=False)),
        "0",
        "forward",
    ),
    "checkpoint": (lambda: (checkpointed(0), checkpointed(3, eps=1e-2)), "1", "forward"),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_other_ways_to_something_else_part_in_the_module_that_differs(name):
    make, module, phase = DIFFERENT[name]
    sides = make()
    for left, right in (sides, reversed(sides)):
        found = nbkit.compare_values(left, right)
        first = found.attrs["first_divergence"]
        assert (first["module"], first["phase"], first["error_class"]) == (module, phase, "local")
        assert (found["error_class"] == "propagated").any()


@pytest.mark.parametrize(
    ("op", "make"),
    [
        ("aten.threshold_backward.default", lambda: checkpointed(3)),
        ("aten.native_layer_norm.default", lambda: attending("op")),
    ],
)
def test_a_fault_in_an_op_that_both_have_is_found_beside_other_ways(op, make):
    right = checkpointed(0) if "layer_norm.default" not in op else attending("eager")
    with Planted(op, scaled):
        left = make()
    first = first_of(left, right)
    assert (first["op"], first["right_op"], first["error_class"]) == (op, op, "local")


def test_a_result_is_no_end_because_only_its_rank_is_read():
    def scored(factor):
        def step():
            logits = torch.linspace(-1, 1, 24).reshape(4, 6).tanh()
            (logits * factor if factor else logits).relu().argmax(-1).float().mean()

        return record(step, values="stats")

    first = first_of(scored(1.01), scored(None))
    assert (first["op"], first["error_class"]) == ("aten.mul.Tensor", "local")


def test_state_of_an_optimizer_differs_though_the_parameters_agree():
    """Adam divides by the size of gradients: its first step is the same for gradients twice as large."""

    def trained(factor):
        torch.manual_seed(0)
        weight, moment = torch.randn(8).requires_grad_(), torch.zeros(8)
        optimizer = torch.optim.Adam([weight], foreach=False)
        weight.grad = torch.ones(8) + moment
        optimizer.step()
        weight.grad.mul_(1.0)
        if factor:
            optimizer.param_groups[0]["weight_decay"] = factor
        return record(optimizer.step, values="stats")

    first = first_of(trained(0.0), trained(0.5))
    assert (first["phase"], first["error_class"], first["right_op"]) == ("optimizer", "local", "aten.add.Tensor")
