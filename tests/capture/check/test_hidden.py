"""Tests that a NaN or an Inf which torch's own formulas mask is no finding, and that one which is kept stays one."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.capture.check.test_findings import found, kinds


@pytest.fixture(params=["native", "python"], autouse=True)
def recorder(request, monkeypatch):
    if request.param == "python":
        monkeypatch.setenv("NBKIT_RECORDER", "python")


def leaf(*values, **options):
    return torch.tensor(values, requires_grad=True, **options)


def rows():
    """Three rows, the first of padding."""
    return leaf([0.0, 0.0], [1.0, 2.0], [3.0, -1.0])


def powers(p):
    base, exponent = leaf(0.0, 1.0, 2.0), leaf(*p)
    return [base, exponent], base**exponent


def of_one(function, *values, **options):
    x = leaf(*values, **options)
    return [x], function(x)


def ctc():
    scores = torch.zeros(2, 1, 5, requires_grad=True)
    length = torch.tensor([2]), torch.tensor([3])
    return [scores], F.ctc_loss(scores.log_softmax(-1), torch.tensor([[1, 2, 3]]), *length, zero_infinity=True)


def of_rows(function):
    x = rows()
    return [x], function(x)


ZEROS = (0.0, 0.0)
MASKED_BY_TORCH = {
    "normalize": lambda: of_rows(lambda x: F.normalize(x)),
    "normalize, of a layer": lambda: of_rows(lambda x: F.normalize(F.relu(x * 1)) @ torch.ones(2, 2)),
    "cosine_similarity": lambda: of_rows(lambda x: F.cosine_similarity(x, torch.ones_like(x))),
    "norm": lambda: of_one(lambda x: x.norm(), *ZEROS),
    "norm, p=3": lambda: of_one(lambda x: x.norm(3), *ZEROS),
    "norm, p=0.5": lambda: of_one(lambda x: x.norm(0.5), 0.0, 1.0),
    "vector_norm of rows": lambda: of_rows(lambda x: torch.linalg.vector_norm(x, dim=-1)),
    "cumprod": lambda: of_one(lambda x: x.cumprod(0), 0.0, 1.0, 2.0),
    "std": lambda: of_one(lambda x: x.std(), 1.0, 1.0, 1.0),
    "0 ** p": lambda: powers((2.0, 2.0, 3.0)),
    "sinc": lambda: of_one(torch.sinc, 0.0, 1.0),
    "atan2": lambda: of_one(lambda x: torch.atan2(x, x), 0.0, 1.0),
    "angle": lambda: of_one(lambda x: torch.complex(x, x * 0).angle(), 0.0, 1.0),
    "complex sgn": lambda: of_one(lambda x: torch.complex(x, x * 0).sgn().real, 0.0, 1.0),
    "poisson_nll_loss": lambda: of_one(lambda x: F.poisson_nll_loss(x, torch.zeros(2), full=True), 0.5, 1.0),
    "ctc_loss": ctc,
    "a root behind a ReLU": lambda: of_one(lambda x: F.relu(x).sqrt(), -1.0, 4.0),
}


@pytest.mark.parametrize("case", MASKED_BY_TORCH)
def test_what_torch_masks_is_no_finding(case):
    def step():
        leaves, result = MASKED_BY_TORCH[case]()
        result.sum().backward()
        assert result.isfinite().all() and all(one.grad.isfinite().all() for one in leaves)

    trace = found(step)
    assert trace.findings.empty, trace.findings["message"].tolist()


def test_what_torch_masks_is_counted():
    assert found(lambda: of_one(lambda x: x.norm(), *ZEROS)[1].backward()).meta["discarded_ops"] == 1


def test_a_mask_that_the_step_computes_is_no_finding():
    scores, values = torch.randn(3, 3, requires_grad=True), torch.randn(1, 3, 2)
    kept = []

    def step():
        kept.append(torch.tril(torch.ones(3, 3)).log())
        ((scores + kept[0]).softmax(-1) @ values).sum().backward()
        F.scaled_dot_product_attention(values, values, values, attn_mask=kept[0])

    assert kinds(step) == []


def twice_masked(mask, dtype=torch.float32):
    """Attends where both a causal mask and the one that is added to the scores allow it, as GPT-Neo does."""
    lowest = torch.finfo(dtype).min
    scores = torch.randn(2, 4, 4, dtype=dtype, requires_grad=True)
    causal = torch.where(torch.ones(4, 4, dtype=torch.bool).tril(), scores, torch.tensor(lowest, dtype=dtype))
    return causal + torch.tensor(mask, dtype=dtype) * lowest


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_scores_that_two_masks_hide_are_no_finding(dtype):
    def step():
        weights = twice_masked([0.0, 0.0, 0.0, 1.0], dtype).softmax(-1)
        assert weights.isfinite().all()
        weights.square().sum().backward()

    assert kinds(step) == []


def divided(x):
    length = x.norm(dim=-1, keepdim=True)
    return torch.where(length > 0, x / length, 0)


KEPT = {
    "where() around a division": (lambda: divided(rows()).sum().backward(), "div", "nan"),
    "the same without gradients": (lambda: divided(rows().detach()), "div", "nan"),
    "a root at 0": (lambda: leaf(0.0, 1.0).sqrt().sum().backward(), "div", "inf"),
    "a root at 0, hidden by where()": (lambda: rooted(leaf(0.0, 1.0)).sum().backward(), "div", "nan"),
    "a norm by hand": (lambda: leaf(0.0, 0.0).square().sum().sqrt().backward(), "div", "inf"),
    "a logarithm of 0": (lambda: leaf(0.0, 1.0).log().sum().backward(), "log", "inf"),
    "a logarithm of a softmax": (lambda: leaf(0.0, 200.0).softmax(0).log().sum().backward(), "log", "inf"),
    "a row without scores": (
        lambda: (torch.zeros(2, 2) + torch.full((2, 2), -math.inf)).softmax(-1),
        "_softmax",
        "nan",
    ),
    "a mask that hides all": (lambda: (torch.zeros(2, 2) + torch.zeros(2, 2).log()).softmax(-1), "log", "inf"),
    "two masks that hide all": (lambda: (twice_masked([1.0] * 4)[:, :1, 1:]).softmax(-1).sum(), "add", "overflow"),
    "scores behind two masks that are kept": (lambda: twice_masked([0.0, 0, 0, 1]).relu().sum(), "add", "overflow"),
    "0 to a negative power": (lambda: powers((-1.0, 2.0, 3.0))[1].sum().backward(), "pow", "inf"),
    "a power below 1": (lambda: (leaf(0.0, 1.0) ** 0.5).sum().backward(), "pow", "inf"),
    "arccosine at 1": (lambda: leaf(1.0, 0.5).acos().sum().backward(), "rsqrt", "inf"),
    "a half that overflows": (lambda: (leaf(300.0, dtype=torch.half) ** 2).sum().backward(), "pow", "overflow"),
    "a loss that is read": (lambda: (leaf(0.0) / 0).sum().item(), "div", "nan"),
    "a loss that is compared": (lambda: (leaf(0.0) / 0).isnan().any(), "div", "nan"),
    "a loss like which others are made": (lambda: torch.zeros_like(leaf(0.0) / 0), "div", "nan"),
    "exp of -Inf": (lambda: torch.zeros(2).log().exp(), "log", "inf"),
    "a gradient that is mended": (lambda: mended(leaf(0.0)), "div", "inf"),
    "a gradient that is set to 0": (lambda: zeroed(leaf(0.0)), "div", "inf"),
    "a sum that a cast mends": (lambda: (torch.zeros(2) / 0).sum().long(), "div", "nan"),
}


def rooted(x):
    return torch.where(x > 0, x.sqrt(), 0)


def mended(x):
    x.sqrt().backward()
    x.grad.nan_to_num_()


def zeroed(x):
    x.sqrt().backward()
    x.grad.zero_()


@pytest.mark.parametrize("case", KEPT)
def test_what_is_kept_stays_a_finding_where_it_begins(case):
    step, op, rule = KEPT[case]
    assert kinds(step)[:1] == [(op, rule)]


def test_a_gradient_that_a_parameter_gets_stays_a_finding():
    net = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(net.parameters())

    def step():
        divided(net(torch.zeros(3, 2)) - net.bias).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    assert [kind for _, kind in kinds(step)][:2] == ["nan", "nan"]


def test_a_recomputed_result_did_not_come_from_outside():
    net, x = nn.Linear(4, 4), torch.randn(2, 4, requires_grad=True)
    trace = found(lambda: checkpoint(lambda x: torch.sqrt(net(x) - 100), x, use_reentrant=False).sum().backward())
    assert set(trace.findings["op"]) == {"aten.sqrt.default"} and set(trace.findings["rule"]) == {"nan"}
