"""Sums kept in half precision, as torch's kernels do, are `reduced`; what is further off is wrong."""

import pytest
import torch
import torch.nn.functional as F

from nbkit.capture.diff.rechecks.running_sums import running_sum
from nbkit.capture.replay.op_traits import traits_of
from nbkit.capture.replay.reference import Reference
from tests.capture.diff.planted import with_fault

aten = torch.ops.aten
HALF = torch.bfloat16
COUNT = 3000


def call_of(op, *args):
    return Reference("cpu:float64").copy(traits_of(op), args, {})


def one_by_one(start, added):
    """The running sum in bfloat16 of rows (K, D), from a row (D)."""
    for row in added:
        start = start.to(HALF) + row.to(HALF)
    return start.double()


def test_index_put_and_index_add():
    start, added = torch.randn(4, 3).to(HALF), torch.randn(50, 3).to(HALF)
    index = torch.randint(4, (50,))
    wanted = torch.stack([one_by_one(row, added[index == place]) for place, row in enumerate(start)])
    calls = {
        "index_put": call_of(aten.index_put.default, start, [index], added, True),
        "index_add": call_of(aten.index_add.default, start, 0, index, added),
        "columns": call_of(aten.index_put.default, start.T, [None, index], added.T, True),
        "index_add of columns": call_of(aten.index_add.default, start.T, 1, index, added.T),
    }
    for name, call in calls.items():
        result = running_sum(call, 0, HALF)
        assert torch.equal(result, wanted.T if "columns" in name else wanted), name
    assert running_sum(call_of(aten.index_put.default, start, [index[:1]], added[:1], False), 0, HALF) is None
    assert running_sum(call_of(aten.sum.default, start), 0, HALF) is None


def test_the_gradient_of_an_embedding():
    gradient, index = torch.randn(5, 9, 3).to(HALF), torch.randint(4, (5, 9))
    wanted = torch.stack([one_by_one(torch.zeros(3), gradient[index == place]) for place in range(4)])
    wanted[2] = 0  # the padding
    result = running_sum(call_of(aten.embedding_dense_backward.default, gradient, index, 4, 2, False), 0, HALF)
    assert torch.equal(result, wanted)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_the_gradient_of_bags_of_embeddings(mode):
    bags = torch.tensor([0, 10, 37])
    rows, index = torch.randn(3, 3).to(HALF).double(), torch.randint(4, (50,))
    of_bag = torch.repeat_interleave(torch.arange(3), torch.tensor([10, 27, 13]))
    sizes = torch.tensor([10, 27, 13])
    args = (rows, index, bags, of_bag, sizes, sizes, 4, False, ["sum", "mean"].index(mode), False, None)
    added = rows[of_bag] / (sizes[of_bag].unsqueeze(1) if mode == "mean" else 1)
    start, wanted = torch.zeros(3), []
    for place in range(4):
        total = start
        for row in added[index == place]:
            total = (total.double() + row).to(HALF)
        wanted.append(total.double())
    call = call_of(aten._embedding_bag_backward.default, *args)
    assert torch.equal(running_sum(call, 0, HALF), torch.stack(wanted))


def test_a_gradient_that_kernels_add_up_in_float32_has_no_such_excuse():
    torch.manual_seed(0)
    x, weight, bias = (torch.randn(shape).to(HALF).requires_grad_() for shape in ((200, 6), (6,), (6,)))
    step = lambda: F.batch_norm(x, None, None, weight, bias, training=True).float().sin().sum().backward()  # noqa: E731
    halved = lambda func, args, out: (out[0], out[1] / 2, out[2])  # noqa: E731
    op = "aten.native_batch_norm_backward.default"
    assert with_fault(step, op, halved, ops=op).diffs["status"].tolist() == ["ok", "mismatch", "ok"]


@pytest.mark.parametrize("mask", [[True, True, True], [False, True, True]])
def test_the_gradients_of_layer_norm(mask):
    gradient, x = torch.randn(2, 20, 3).to(HALF), torch.randn(2, 20, 3).to(HALF)
    mean, scale = x.double().mean(-1, keepdim=True), 1 / x.double().std(-1, keepdim=True, correction=0)
    call = call_of(
        aten.native_layer_norm_backward.default, gradient, x, [3], mean, scale, torch.ones(3), torch.zeros(3), mask
    )
    bias = running_sum(call, sum(mask) - 1, HALF)
    assert torch.equal(bias, one_by_one(torch.zeros(3), gradient.reshape(-1, 3)))
    weight = running_sum(call, sum(mask) - 2, HALF)
    exact = (gradient * (x.double() - mean) * scale).reshape(-1, 3)
    torch.testing.assert_close(weight, exact.sum(0), rtol=0.1, atol=0.1)
    assert not torch.equal(weight, exact.sum(0))


def added_up(op, change):
    """The row of `op` where a gradient of 3,000 ones is added up by a kernel that gives what `change` makes of it."""
    places = torch.arange(COUNT) % 2
    x = torch.zeros(2, 4, dtype=HALF, requires_grad=True)
    normed = torch.randn(COUNT, 4).to(HALF)
    steps = {
        "index_put": lambda: x[places].sum().backward(),
        "embedding_dense_backward": lambda: F.embedding(places, x).sum().backward(),
        "native_layer_norm_backward": lambda: F.layer_norm(normed, (4,), None, x[0]).sum().backward(),
    }
    trace = with_fault(steps[op], f"aten.{op}.default", change, ops=f"aten.{op}")
    return trace.diffs.iloc[-1]


@pytest.mark.parametrize("op", ["index_put", "embedding_dense_backward", "native_layer_norm_backward"])
@pytest.mark.parametrize(("factor", "status"), [(1.0, "ok"), (256 / 1500, "reduced"), (3.0, "mismatch")])
def test_a_sum_that_stands_still_is_reduced(op, factor, status):
    """A running sum of ones in bfloat16 stands still at 256."""
    count = COUNT if op.startswith("native") else COUNT // 2
    total = 256.0 if status == "reduced" else factor * count

    def change(func, args, out):
        (out if isinstance(out, torch.Tensor) else out[2]).fill_(total)
        return out

    row = added_up(op, change)
    assert row["status"] == status
    if status == "reduced":
        off = 1 - 256 / count
        assert row["message"].startswith(f"as exact as one running sum in bfloat16, which is {off:.1%} off here")


def test_what_is_no_running_sum_is_wrong_where_sums_are_short():
    x = torch.zeros(200, 4, dtype=HALF, requires_grad=True)
    places = torch.arange(COUNT) % 200
    trace = with_fault(
        lambda: x[places].sum().backward(),
        "aten.index_put.default",
        lambda func, args, out: out * 0.5,
        ops="aten.index_put",
    )
    assert trace.diffs.iloc[-1]["status"] == "mismatch"
