"""Where a few elements of a product cancel, their rows and columns are looked at again, and no others."""

import pytest
import torch

from nbkit.capture.diff.product_parts import factors_of
from nbkit.capture.replay.op_traits import plan_of
from nbkit.capture.replay.reference import Call
from tests.capture.diff.planted import compared, only, with_fault

aten = torch.ops.aten
ROWS, LENGTH, COLUMNS = 24, 400, 40
SIZE = LENGTH * (ROWS + COLUMNS)
WHERE = [(3, 5), (20, 7)]  # elements that cancel; where their rows and columns meet, others do
ONE = torch.Generator().manual_seed(1)


def factors():
    """Two factors, small but for rows and columns whose products cancel."""
    left, right = torch.randn(ROWS, LENGTH, generator=ONE) * 1e-3, torch.randn(LENGTH, COLUMNS, generator=ONE) * 1e-3
    for row, column in WHERE:
        left[row] = torch.randn(LENGTH // 2, generator=ONE).repeat(2) * 30
        half = torch.randn(LENGTH // 2, generator=ONE) * 30
        right[:, column] = torch.cat([half, -half])
    return left, right


def product(op):
    left, right = factors()
    bias = torch.full((COLUMNS,), 1e-3)
    batches = torch.stack([left * 1e-3, left]), torch.stack([right, right])
    return {
        "mm": lambda: left.mm(right),
        "transposed": lambda: left.mm(right.T.contiguous().T),
        "addmm": lambda: torch.addmm(bias, left, right, beta=0.5, alpha=2),
        "bmm": lambda: batches[0].bmm(batches[1]),
        "baddbmm": lambda: torch.baddbmm(bias, *batches),
    }[op]


OPS = ["mm", "transposed", "addmm", "bmm", "baddbmm"]


@pytest.fixture
def looks(monkeypatch):
    """Elements of the inputs of each call that was repeated with other inputs."""
    sizes, before = [], Call.conditioning

    def noting(self, draws, eps):
        sizes.append(sum(tensor.numel() for tensor in self.tensors()))
        return before(self, draws, eps)

    monkeypatch.setattr(Call, "conditioning", noting)
    return sizes


@pytest.mark.parametrize("op", OPS)
def test_only_a_part_is_repeated(op, looks):
    trace = compared(product(op))
    assert trace.meta["mismatches"] == 0
    assert trace.diffs["noise_ratio"].max() <= 8
    assert len(looks) == 1
    assert looks[0] < SIZE * (1 + op.endswith("bmm")) / 8


@pytest.mark.parametrize("place", [WHERE[1], (0, 0)], ids=["of those that cancel", "elsewhere"])
def test_a_wrong_element_is_still_found(place):
    def off(func, args, out):
        out[place] += 0.5
        return out

    trace = with_fault(product("mm"), "aten.mm.default", off)
    row = only(trace)
    assert row["mismatch_count"] == 1
    assert f"worst at {list(place)}" in row["message"]


def test_where_most_of_it_cancels_the_whole_is_repeated(looks):
    left, right = factors()
    compared(lambda: left[[3] * ROWS].mm(right[:, [5] * COLUMNS]))
    assert looks == [SIZE]


def test_products_that_are_written_elsewhere_are_repeated_as_a_whole(looks):
    left, right = factors()
    compared(lambda: torch.mm(left, right, out=torch.empty(ROWS, COLUMNS)))
    assert looks == [SIZE + ROWS * COLUMNS]


@pytest.mark.parametrize("func", [aten.mv.default, aten.convolution.default, aten.addmm_.default, aten.mm.out])
def test_what_is_no_plain_product_of_matrices(func):
    assert factors_of(plan_of(func)) == ()
