"""Softmax and masks of attention: what is named, and the right ways to attend that are not."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit
from nbkit.findings.dataflow.flow import Flow
from nbkit.trace.trace import step_of
from tests.findings.dataflow.steps import found

B, H, T, S, D = 2, 3, 6, 5, 4
Q, K, V = (torch.randn(B, H, T, D, requires_grad=True) for _ in range(3))
OTHER = torch.randn(B, H, S, D)
FLAT, CLUSTERS, ASSIGNING = torch.randn(B, T, D), nn.Linear(D, S), nn.Linear(D, T)
MASK, BIAS = torch.zeros(T, T), torch.randn(H, T, T)


def scores(key=K):
    return Q @ key.transpose(-1, -2) / D**0.5


def attend(weights, value=V):
    return (weights @ value).square().sum().backward()


def dropped(weights):
    return F.dropout(weights, 0.1)


def einsum(dim):
    weights = torch.einsum("bhtd,bhsd->bhts", Q, K).softmax(dim)
    return torch.einsum("bhts,bhsd->bhtd", weights, V).sum()


def turned(dim):
    """Two matrices, whose weights are turned for the product."""
    q, k, v = (x[0, 0] for x in (Q, K, V))
    return (v.t() @ (q @ k.t()).softmax(dim).t()).sum()


def flattened(dim):
    q, k, v = (x.reshape(B * H, T, D) for x in (Q, K, V))
    return torch.bmm(dropped(torch.bmm(q, k.transpose(1, 2)).softmax(dim)), v).sum()


WRONG_DIM = {
    "over queries": (lambda: attend(scores().softmax(-2)), "warning", "dimension -2 of the scores [2, 3, 6, 6]"),
    "over heads": (lambda: attend(scores().softmax(1)), "warning", "dimension 1 of the scores [2, 3, 6, 6]"),
    "over the batch": (lambda: attend(scores().softmax(0)), "warning", "dimension 0 of the scores [2, 3, 6, 6]"),
    "with a size of one": (lambda: attend(scores()[:, None].softmax(-2).squeeze(1)), "warning", "[2, 1, 3, 6, 6]"),
    "with dropout": (lambda: attend(dropped(scores().softmax(-2))), "warning", "dimension -2"),
    "with dropout as on a GPU": (
        lambda: attend(torch.native_dropout(scores().softmax(-2), 0.1, True)[0]),
        "warning",
        "dimension -2",
    ),
    "with a mask": (lambda: attend((scores() + MASK).softmax(2)), "warning", "dimension 2"),
    "turned matrices": (lambda: turned(0), "warning", "dimension 0 of the scores [6, 6]"),
    "in another dtype": (lambda: attend(scores().float().softmax(-2).to(V.dtype)), "warning", "dimension -2"),
    "as einsum": (lambda: einsum(2), "warning", "dimension 2"),
    "as bmm": (lambda: flattened(1), "warning", "dimension 1 of the scores [6, 6, 6]"),
    "the other side": (lambda: (V.transpose(2, 3) @ scores().softmax(-1)).sum(), "warning", "dimension -1"),
    "of fewer keys": (lambda: attend(scores(OTHER).softmax(-2), OTHER), "hint", "of size 5"),
    "without gradients": (lambda: torch.no_grad()(lambda: scores().softmax(-2) @ V)(), "warning", "dimension -2"),
}


@pytest.mark.parametrize("case", WRONG_DIM)
def test_a_softmax_over_another_dimension_than_the_sum_is_named(case):
    step, severity, message = WRONG_DIM[case]
    [finding] = found(step)
    assert (finding.rule, finding.severity, finding.op) == ("softmax_dim", severity, "aten._softmax.default")
    assert message in finding.message
    assert "sums its result over another one" in finding.message


def slots():
    """Slots compete for the inputs; each takes the mean of what it got."""
    weights = scores(OTHER).softmax(-2) + 1e-8
    return attend(weights / weights.sum(-1, keepdim=True), OTHER)


def square_slots():
    weights = scores().softmax(-2)
    return attend(weights / weights.sum(-1, keepdim=True))


def slots_scaled_later():
    """The mean of what each slot got is taken after the sum."""
    weights = scores().softmax(-2)
    return ((weights @ V) / weights.sum(-1, keepdim=True)).sum()


def linear_attention():
    return (Q.softmax(-1) @ (K.softmax(-2).transpose(-1, -2) @ V)).sum()


def pooled_clusters():
    """DiffPool and NetVLAD: each position is shared among clusters, which sum over positions."""
    return (CLUSTERS(FLAT).softmax(-1).transpose(1, 2) @ FLAT).sum()


def soft_experts():
    logits = FLAT @ torch.randn(D, S, requires_grad=True)
    made = logits.softmax(1).transpose(1, 2) @ FLAT
    return (logits.softmax(2) @ made).sum()


def coattention():
    """Both ways at once, as DCN and QANet do."""
    both = scores(OTHER)
    return (both.softmax(3) @ both.softmax(2).transpose(2, 3) @ V).sum()


def talking_heads():
    mix = nn.Linear(H, H)
    weights = mix(scores().softmax(-1).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
    return attend(weights)


def image_attention():
    """SAGAN: weights are turned before they are read."""
    flat = FLAT.requires_grad_()
    weights = torch.bmm(flat, flat.transpose(1, 2)).softmax(-1)
    return torch.bmm(flat.transpose(1, 2), weights.transpose(1, 2)).sum()


def capsules():
    """Routing by agreement: each capsule is shared among those of the next layer, which sum over what they get."""
    made, logits = torch.randn(B, T, S, D, requires_grad=True), torch.zeros(B, T, S)
    for _ in range(2):
        out = torch.einsum("bij,bije->bje", logits.softmax(-1), made)
        logits = logits + torch.einsum("bje,bije->bij", out, made)
    return torch.einsum("bij,bije->bje", logits.softmax(-1), made).sum()


def routed():
    top = CLUSTERS(FLAT).softmax(-1).topk(2)[0]
    return (top / top.sum(-1, keepdim=True)).sum()


def with_its_mean():
    weights = scores().softmax(-1)
    return (weights @ V).sum() + weights.mean(1).detach().sum()


def entropy():
    weights = scores().softmax(-2)
    return -(weights * weights.log()).sum()


RIGHT = {
    "over keys": lambda: attend(scores().softmax(-1)),
    "over keys, by number": lambda: attend(scores().softmax(3)),
    "as einsum": lambda: einsum(3),
    "as bmm": lambda: flattened(2),
    "turned matrices": lambda: turned(1),
    "turned, over keys": lambda: (V.transpose(2, 3) @ scores().transpose(2, 3).softmax(-2)).sum(),
    "fewer keys": lambda: attend(scores(OTHER).softmax(-1), OTHER),
    "slots": slots,
    "square slots": square_slots,
    "slots that are scaled later": slots_scaled_later,
    "linear attention": linear_attention,
    "clusters": pooled_clusters,
    "soft experts": soft_experts,
    "coattention": coattention,
    "talking heads": talking_heads,
    "attention of an image": image_attention,
    "capsules": capsules,
    "a router": routed,
    "weights that are shown": with_its_mean,
    "entropy": entropy,
    "fused": lambda: F.scaled_dot_product_attention(Q, K, V).sum(),
    "multi-head": lambda: nn.MultiheadAttention(D, 2)(FLAT, FLAT, FLAT)[0].sum(),
    "a map": lambda: torch.randn(2, 4, 5, 5).softmax(1).argmax(1),
    "weights that are no scores": lambda: attend((torch.randn(B, H, T, T) * Q[..., :1]).softmax(-2)),
    "a layer that assigns": lambda: attend(ASSIGNING(Q).softmax(-2)),
    "one mask": lambda: attend((scores() + MASK).softmax(-1)),
    "a mask and a bias": lambda: attend((scores() + BIAS + MASK).softmax(-1)),
    "two parts of a bias": lambda: attend((scores() + BIAS[0] + BIAS[1]).softmax(-1)),
    "a mask in two layers": lambda: [attend((scores() + MASK).softmax(-1)) for _ in range(2)],
    "a number twice": lambda: attend((scores() + torch.ones(1) + 1 + 1).softmax(-1)),
}


@pytest.mark.parametrize("case", RIGHT)
def test_right_attention_is_not_named(case):
    assert found(RIGHT[case]) == []


TWICE = {
    "one after the other": lambda: attend((scores() + MASK + MASK).softmax(-1)),
    "in another shape": lambda: attend((scores() + MASK[None, None] + BIAS + MASK.view(1, T, T)).softmax(-1)),
    "between others": lambda: attend(((scores() + BIAS) * 2 + MASK + BIAS).softmax(-1)),
}


@pytest.mark.parametrize("case", TWICE)
def test_a_mask_that_is_added_twice_is_named(case):
    [finding] = found(TWICE[case])
    assert (finding.rule, finding.severity, finding.op) == ("twice_added_mask", "warning", "aten.add.Tensor")
    assert "to the scores of attention a second time" in finding.message


def test_what_a_complex_rotary_embedding_reads_is_behind_it():
    angles = torch.polar(torch.ones(T, D // 2), torch.randn(T, D // 2))

    def rotated(x):
        turned = torch.view_as_complex(x.unflatten(-1, (-1, 2))) * angles
        return torch.view_as_real(turned).flatten(-2)

    with nbkit.optrace() as trace:
        rotated(Q * 2).neg()
    flow = Flow(step_of(trace))
    product, turned = [op for op in flow.ops.values() if op.name == "mul"]
    last = [op for op in flow.ops.values() if op.outputs][-1]
    assert flow.origin(turned.inputs[0]) is product
    assert flow.origin(last.inputs[0]) is turned
