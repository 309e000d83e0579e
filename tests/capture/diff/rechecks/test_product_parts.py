"""Where a few elements of a product cancel, their rows and columns are looked at again, and no others."""

import numpy as np
import pytest
import torch

from nbkit.capture.diff.measuring import Meter
from nbkit.capture.diff.rechecks.product_parts import factors_of, part_of
from nbkit.capture.replay.chunked import PIECE
from nbkit.capture.replay.op_traits import traits_of
from nbkit.capture.replay.reference import Call, Reference
from tests.capture.diff.planted import only, with_fault

aten = torch.ops.aten
ROWS, LENGTH, COLUMNS = 24, 400, 40
SIZE = LENGTH * (ROWS + COLUMNS)
WHERE = [(3, 5), (20, 7)]  # elements that cancel; where their rows and columns meet, others do
# What a float32 kernel may make of the elements that cancel: far more than they and their neighbors round by, and
# less than what the rounding of their inputs alone would change them by.
ROUNDED = 5e-4


def factors():
    """Two factors, small but for rows and columns whose products cancel."""
    random = torch.Generator().manual_seed(1)
    left = torch.randn(ROWS, LENGTH, generator=random) * 1e-3
    right = torch.randn(LENGTH, COLUMNS, generator=random) * 1e-3
    for row, column in WHERE:
        left[row] = torch.randn(LENGTH // 2, generator=random).repeat(2) * 30
        half = torch.randn(LENGTH // 2, generator=random) * 30
        right[:, column] = torch.cat([half, -half])
    return left, right


def product(op, left, right):
    """What makes one product of these factors, in their dtype."""
    bias = torch.full((COLUMNS,), 1e-3).to(left.dtype)
    batches = torch.stack([left / 1024, left]), torch.stack([right, right])
    return {
        "mm": lambda: left.mm(right),
        "transposed": lambda: left.mm(right.T.contiguous().T),
        "addmm": lambda: torch.addmm(bias, left, right, beta=0.5, alpha=2),
        "bmm": lambda: batches[0].bmm(batches[1]),
        "baddbmm": lambda: torch.baddbmm(bias, *batches),
        "out": lambda: torch.mm(left, right, out=left.new_empty(len(left), right.shape[1])),
    }[op]


def compared_product(op, left, right, errors):
    """A trace of the product, whose kernel gives the exact numbers with these errors: torch's own differ by CPU."""
    packet = {"transposed": "mm", "out": "mm"}.get(op, op)
    exact = product(op, left.double(), right.double())()

    def plant(func, args, out):
        out.copy_(exact)
        for index, error in errors.items():
            (out[-1] if out.dim() == 3 else out)[index] += error
        return out

    name = f"aten.{packet}.{'out' if op == 'out' else 'default'}"
    return with_fault(product(op, left, right), name, plant)


@pytest.fixture
def looks(monkeypatch):
    """Elements of the inputs of each call that was repeated with other inputs."""
    sizes, before = [], Call.conditioning

    def noting(self, draws, eps):
        sizes.append(sum(tensor.numel() for tensor in self.tensors()))
        return before(self, draws, eps)

    monkeypatch.setattr(Call, "conditioning", noting)
    return sizes


@pytest.mark.parametrize("op", ["mm", "transposed", "addmm", "bmm", "baddbmm"])
def test_only_a_part_is_repeated(op, looks):
    trace = compared_product(op, *factors(), dict.fromkeys(WHERE, ROUNDED))
    assert trace.meta["mismatches"] == 0
    assert trace.diffs["noise_ratio"].max() <= 8
    assert len(looks) == 1
    assert looks[0] < SIZE * (1 + op.endswith("bmm")) / 8


def test_where_one_draw_misses_more_are_of_the_part_alone(looks):
    trace = compared_product("mm", *factors(), dict.fromkeys(WHERE, 80 * ROUNDED))
    assert trace.meta["mismatches"] == 0
    assert len(looks) > 1
    assert max(looks) < SIZE / 8


@pytest.mark.parametrize("error", [ROUNDED, 0.5], ids=["right", "wrong"])
def test_the_noise_of_pieces_leads_to_the_verdict_that_all_elements_lead_to(error, looks, monkeypatch):
    left, right = factors()
    more = torch.randn(2 * PIECE // COLUMNS, LENGTH, generator=torch.Generator().manual_seed(2)) * 1e-3
    tall = torch.cat([left, more])
    rows, repeated = [], []
    for measure in (Meter.measure, lambda *pair: (whole := before(*pair)) and whole._replace(piece_noise=None)):
        before = Meter.measure
        monkeypatch.setattr(Meter, "measure", measure)
        rows.append(only(compared_product("mm", tall, right, dict.fromkeys(WHERE, ROUNDED) | {(7, 7): error})))
        repeated.append(looks.copy())
        looks.clear()
    assert rows[0]["status"] == rows[1]["status"] == ("ok" if error == ROUNDED else "mismatch")
    assert rows[0]["noise_ratio"] == pytest.approx(rows[1]["noise_ratio"], rel=1e-9)
    assert repeated[0] == repeated[1] != []


@pytest.mark.parametrize("index", [WHERE[1], (0, 0)], ids=["of those that cancel", "elsewhere"])
def test_a_wrong_element_is_still_found(index):
    row = only(compared_product("mm", *factors(), dict.fromkeys(WHERE, ROUNDED) | {index: 0.5}))
    assert row["mismatch_count"] == 1
    assert f"worst at {list(index)}" in row["message"]


def test_where_most_of_it_cancels_the_whole_is_repeated(looks):
    left, right = factors()
    compared_product("mm", left[[3] * ROWS], right[:, [5] * COLUMNS], {...: ROUNDED})
    assert looks == [SIZE]


def test_products_that_are_written_elsewhere_are_repeated_as_a_whole(looks):
    compared_product("out", *factors(), dict.fromkeys(WHERE, ROUNDED))
    assert looks == [SIZE + ROWS * COLUMNS]


def test_a_dtype_that_a_product_is_given_is_given_to_the_part():
    left, right = factors()
    call = Reference("cpu:float64").copy(traits_of(aten.mm.dtype), (left, right, torch.float32), {})
    part = part_of(call, (ROWS, COLUMNS), np.array([7]))
    assert [one.shape for one in part.call.tensors()] == [(1, LENGTH), (LENGTH, 1)]
    assert part.call.args[2:] == call.args[2:] == (torch.float64,)


def test_what_rounds_as_usual_is_not_repeated(looks):
    compared_product("mm", *factors(), {})
    assert looks == []


@pytest.mark.parametrize("func", [aten.mv.default, aten.convolution.default, aten.addmm_.default, aten.mm.out])
def test_what_is_no_plain_product_of_matrices(func):
    assert factors_of(traits_of(func)) == ()
