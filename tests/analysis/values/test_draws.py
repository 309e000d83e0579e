"""Two runs with other seeds: what draws is told to draw, and memory that nobody filled tells nothing."""

import pytest
import torch
import torch.nn.functional as F

import nbkit
from tests.capture.models import record

X = torch.rand(64, 64) * 4 + 1
DRAWN = {
    "aten.bernoulli.default": lambda: torch.bernoulli(X / 8),
    "aten.poisson.default": lambda: torch.poisson(X),
    "aten.rrelu_with_noise.default": lambda: F.rrelu(-X, training=True),
    "aten._standard_gamma.default": lambda: torch._standard_gamma(X),
    "aten.native_dropout.default": lambda: torch.native_dropout(X, 0.5, True)[0],
}


def two_seeds(draw):
    return [record(lambda: (torch.manual_seed(seed), draw() * 2), values="stats") for seed in (0, 1)]


@pytest.mark.parametrize("op", DRAWN)
def test_an_op_that_draws_is_told_to_draw(op):
    first = nbkit.compare_values(*two_seeds(DRAWN[op])).attrs["first_divergence"]
    assert first["op"] == op
    assert "it draws random numbers, with another seed" in first["message"]


@pytest.mark.parametrize(
    "empty", [lambda: torch.empty_permuted((8, 8), (1, 0)), lambda: torch.empty(8, 8), lambda: X.new_empty(8, 8)]
)
def test_memory_that_nobody_filled_is_no_difference(empty):
    def run(value):
        memory = empty().fill_(value)  # what the next one may get
        del memory
        return record(lambda: (empty(), X * 2), values="stats")

    found = nbkit.compare_values(run(1.0), run(2.0))
    assert found.attrs["first_divergence"] is None
    assert found["error_class"][found["op"].str.contains("empty")].isna().all()
