"""Wrong random numbers that have the right mean are found once there are enough of them; right ones never are."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from nbkit.capture.diff.random_statistics import chi_square_sigmas, count_off
from tests.capture.diff.planted import compared, with_fault, wrong


def rows_like_the_first(out):
    return out.copy_(out[:1].expand_as(out))


def with_mean_and_scatter_of(out):
    return out.copy_((torch.rand(out.shape, generator=torch.Generator().manual_seed(1)) - 0.5) * 12**0.5)


FAULTS = {
    "too narrow": ((450,), "normal_", lambda out: out.mul_(0.7), "standard deviation"),
    "constant": ((24,), "normal_", lambda out: out.zero_(), "standard deviation 0, expected 1"),
    "uniform": ((1000,), "normal_", with_mean_and_scatter_of, "not spread as they should be"),
    "narrow": ((700,), "uniform_", lambda out: out.sub_(0.5).mul_(0.8).add_(0.5), "not spread as they should be"),
    "two values": ((300,), "exponential_", lambda out: out.copy_(torch.arange(300) % 2 * 2), "not spread"),
    "alike rows": ((30, 8), "bernoulli_", rows_like_the_first, "each row of 8 numbers is like the first of 30"),
    "alike parts": ((4, 20, 3), "normal_", rows_like_the_first, "each part of 60 numbers is like the first of 4"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_distribution_with_the_right_mean_is_found(name):
    shape, op, change, text = FAULTS[name]
    draw = lambda: getattr(torch.empty(shape), op)()  # noqa: E731
    assert wrong(compared(draw)).empty
    full = next(str(one) for one in map(str, compared(draw).diffs["op"]) if op in one)
    row = wrong(with_fault(draw, full, lambda func, args, out: change(out))).iloc[0]
    assert text in row["message"]


def test_integers_of_which_some_never_come_are_found():
    draw = lambda: torch.randint(0, 8, (500,))  # noqa: E731
    change = lambda func, args, out: out - out % 2 + (out > 3)  # noqa: E731
    assert "not spread" in wrong(with_fault(draw, "aten.randint.low", change)).iloc[0]["message"]


def test_a_dropout_without_its_scale_is_found():
    x = torch.randn(50, 4)
    draw = lambda: torch.native_dropout(x, 0.5, True)  # noqa: E731
    trace = with_fault(draw, "aten.native_dropout.default", lambda func, args, out: (x * out[1], out[1]))
    assert wrong(trace).iloc[0]["message"] == "random: the output is not the kept inputs, scaled"


def repeated(draws, change):
    """The rows of three calls of which a fault gives the second one the numbers of the first."""
    first = []

    def spoil(func, args, out):
        return out.copy_(first[0])

    def step():
        first.append(draws().clone())
        change()
        draws()

    op = next(str(one) for one in compared(lambda: draws()).diffs["op"])
    return wrong(with_fault(step, op, spoil, call=1))


@pytest.mark.parametrize("draws", [lambda: torch.randn(40), lambda: torch.empty(200).bernoulli_(0.5)])
def test_the_same_numbers_in_the_next_call_are_found(draws):
    rows = repeated(draws, lambda: None)
    assert len(rows) == 1
    assert "numbers as in the last call of this op, though the generator has moved" in rows.iloc[0]["message"]


def test_few_numbers_may_come_again():
    assert repeated(lambda: torch.empty(8).bernoulli_(0.5), lambda: None).empty
    assert repeated(lambda: torch.empty(500).bernoulli_(0.999), lambda: None).empty


def test_a_generator_that_was_set_back_gives_the_same_numbers():
    """Seeds, checkpointing and generators of one's own."""
    layer = torch.nn.Sequential(torch.nn.Linear(30, 30), torch.nn.Dropout(0.5))

    def step():
        for _ in range(2):
            torch.manual_seed(1)
            torch.randn(500)
            torch.randn(500, generator=torch.Generator().manual_seed(2))
            F.dropout(torch.ones(500), 0.5)
        checkpoint(layer, torch.randn(9, 30, requires_grad=True), use_reentrant=False).sum().backward()
        torch.nn.init.normal_(torch.empty(100), std=0.0)
        torch.nn.init.normal_(torch.empty(100), std=0.0)

    trace = compared(step)
    assert wrong(trace).empty
    assert trace.diffs["message"].eq("random: checked by statistics").sum() == 11


def test_bounds_of_skewed_statistics():
    # Of 24 numbers with 0.8 of the scatter that they should have, as of one rare number, nothing can be said.
    assert abs(chi_square_sigmas(24 * 0.8**2, 24)) < 2
    assert chi_square_sigmas(5000 * 0.8**2, 5000) < -10
    assert count_off("ones", 5, 1.0, 1.0) is None
    assert count_off("ones", 60, 1.0, 1.0) is not None
    assert count_off("ones", 1, 0.0, 0.0) is not None


@pytest.mark.full
@pytest.mark.parametrize("seed", range(40))
def test_right_draws_of_any_size_are_right(seed):
    torch.manual_seed(seed)
    shape = [(1,), (3, 7), (64,), (10, 13), (1000,), (64, 64), (30_000,), (2, 2, 2)][seed % 8]

    def step():
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            x = torch.empty(shape, dtype=dtype)
            for fill in (
                x.normal_, lambda x=x: x.normal_(100, 0.01), x.uniform_, lambda x=x: x.uniform_(10, 10.5),
                x.exponential_, lambda x=x: x.bernoulli_(0.001), lambda x=x: x.bernoulli_(0.9),
                lambda x=x: torch.native_dropout(x, 0.01, True),
            ):  # fmt: skip
                fill()
        torch.randint(0, 2, shape), torch.randint(-5, 10**9, shape), torch.randperm(shape[0])

    assert wrong(compared(step)).empty
