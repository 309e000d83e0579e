"""Random ops are not run again; their statistics say whether they are right."""

import pytest
import torch
import torch.nn.functional as F

from tests.capture.diff.planted import compared, with_fault, wrong

RIGHT = {
    "bernoulli": lambda: torch.full((5000,), 0.3).bernoulli(),
    "bernoulli_": lambda: torch.empty(5000).bernoulli_(0.9),
    "native_dropout": lambda: torch.ops.aten.native_dropout(torch.randn(5000), 0.2, True),
    "uniform_": lambda: torch.empty(5000).uniform_(-3, 2),
    "rand": lambda: torch.rand(5000, dtype=torch.bfloat16),
    "normal_": lambda: torch.empty(5000).normal_(3, 0.1),
    "randn": lambda: torch.randn(5000),
    "randn.generator": lambda: torch.randn(5000, dtype=torch.complex64, generator=torch.Generator()),
    "randn_like": lambda: torch.randn_like(torch.ones(5000, dtype=torch.complex64)),
    "rand_like": lambda: torch.rand_like(torch.ones(5000, dtype=torch.complex64)),
    "exponential_": lambda: torch.empty(5000).exponential_(2.0),
    "randint": lambda: torch.randint(-5, 20, (5000,)),
    "randperm": lambda: torch.randperm(100),
    "multinomial": lambda: torch.tensor([0.1, 0.0, 0.9]).multinomial(50, replacement=True),
}
ZERO, INF = torch.tensor([0]), float("inf")
FAULTS = {
    "rand": ("aten.rand.default", lambda out: out.mul_(0.9), "mean 0.4"),
    "uniform_": ("aten.uniform_.default", lambda out: out.add_(5), "values outside [-3.0, 2.0)"),
    "bernoulli_": ("aten.bernoulli_.float", lambda out: out.fill_(1), "ones 5000, expected 4500"),
    "randn": ("aten.randn.default", lambda out: out.mul_(2), "standard deviation 1.98"),
    "randn_like": ("aten.randn_like.default", lambda out: out.mul_(2), "expected 0.707107"),
    "normal_": ("aten.normal_.default", lambda out: out.add_(1), "mean 3.99924, expected 3"),
    "exponential_": ("aten.exponential_.default", lambda out: out.neg_(), "values below 0"),
    "randint": ("aten.randint.low", lambda out: out.fill_(-5), "mean -5, expected 7"),
    "randperm": ("aten.randperm.default", lambda out: out.fill_(1), "not a permutation"),
    "multinomial": ("aten.multinomial.default", lambda out: out.fill_(1), "draws of weight 0"),
    "bernoulli_, thirds": ("aten.bernoulli_.float", lambda out: out.div_(3), "values other than 0 and 1"),
    "randn, one Inf": ("aten.randn.default", lambda out: out.index_fill_(0, ZERO, INF), "values that are not finite"),
    "exponential_, doubled": ("aten.exponential_.default", lambda out: out.mul_(2), "expected 0.5"),
    "randint, too large": ("aten.randint.low", lambda out: out.fill_(20), "values outside [-5, 20): from 20 to 20"),
    "multinomial, below 0": ("aten.multinomial.default", lambda out: out.fill_(-1), "indices outside the weights"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_generator_is_right(name):
    """Defect B35."""
    diffs = compared(RIGHT[name]).diffs
    row = diffs[diffs["op"].str.startswith(f"aten.{name}")].iloc[0]
    assert (row["status"], row["message"]) == ("ok", "random: checked by statistics")


def test_a_generator_of_no_numbers_is_right():
    diffs = compared(lambda: (torch.rand(0), torch.randperm(0))).diffs
    rows = diffs[diffs["op"].isin(["aten.rand.default", "aten.randperm.default"])]
    assert rows[["status", "message"]].to_numpy().tolist() == [["ok", "random: checked by statistics"]] * 2


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_distribution_is_found(name):
    op, change, text = FAULTS[name]
    trace = with_fault(RIGHT[name.partition(",")[0]], op, lambda func, args, out: change(out))
    row = wrong(trace).iloc[0]
    assert (row["status"], row["op"]) == ("mismatch", op)
    assert text in row["message"]


def test_defect_b35_dropout_is_not_called_wrong():
    x = torch.randn(64, 64)
    trace = compared(lambda: F.dropout(F.dropout(x, 0.5), 0.1))
    assert wrong(trace).empty
    assert trace.meta["skipped"]["not compared: random ops, checked by statistics"] == 2


def test_random_ops_of_which_no_statistic_is_known_are_counted():
    trace = compared(lambda: (torch.empty(8).cauchy_(), torch.poisson(torch.ones(8))))
    assert trace.meta["skipped"]["not compared: random ops without a statistic"] == 2
    assert not set(trace.diffs["op"]) & {"aten.cauchy_.default", "aten.poisson.default"}


def test_attention_without_dropout_is_compared():
    q = torch.randn(1, 2, 4, 8)
    diffs = compared(lambda: F.scaled_dot_product_attention(q, q, q)).diffs
    assert diffs["status"].tolist() == ["ok", "ok"]
    assert diffs["noise_ratio"].notna().all()
