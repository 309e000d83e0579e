"""Bytes that writes to a part of a tensor move: what a real call changes, and what it has to read for that."""

import pytest
import torch
import torch.nn.functional as F

import nbkit

ROWS, WIDTH = 1000, 64
ONE_ROW, INDEX = WIDTH * 4, 8


def cache():
    return torch.zeros(ROWS, WIDTH)


at, row = torch.tensor([7]), torch.ones(1, WIDTH)
wide = torch.full((1, WIDTH), 7)
# Each call, and the bytes that it reads beside the rows that it adds to; whether it adds.
WRITES = {
    "index_copy_": (lambda x: x.index_copy_(0, at, row), ONE_ROW + INDEX, False),
    "index_add_": (lambda x: x.index_add_(0, at, row), ONE_ROW + INDEX, True),
    "index_reduce_": (lambda x: x.index_reduce_(0, at, row, "amax"), ONE_ROW + INDEX, True),
    "index_fill_": (lambda x: x.index_fill_(0, at, 1.0), INDEX, False),
    "index_put_": (lambda x: x.index_put_((at,), row), ONE_ROW + INDEX, False),
    "x[:, index] = number": (lambda x: x.__setitem__((slice(None), at), torch.ones(())), 4 + INDEX, False),
    "index_put_ of elements": (lambda x: x.index_put_((at, at), torch.ones(1)), 4 + INDEX, False),
    "index_put_ that adds": (lambda x: x.index_put_((at,), row, accumulate=True), ONE_ROW + INDEX, True),
    "x[index] = row": (lambda x: x.__setitem__(at, row), ONE_ROW + INDEX, False),
    "put_": (lambda x: x.put_(at, torch.ones(1)), 4 + INDEX, False),
    "put_ that adds": (lambda x: x.put_(at, torch.ones(1), accumulate=True), 4 + INDEX, True),
    "scatter_": (lambda x: x.scatter_(0, wide, row), ONE_ROW + WIDTH * INDEX, False),
    "scatter_ of a number": (lambda x: x.scatter_(0, wide, 1.0), WIDTH * INDEX, False),
    "scatter_ that adds": (lambda x: x.scatter_(0, wide, row, reduce="add"), ONE_ROW + WIDTH * INDEX, True),
    "scatter_add_": (lambda x: x.scatter_add_(0, wide, row), ONE_ROW + WIDTH * INDEX, True),
    "scatter_reduce_": (lambda x: x.scatter_reduce_(0, wide, row, "sum"), ONE_ROW + WIDTH * INDEX, True),
    "copy_ to a slice": (lambda x: x[7:8].copy_(row), ONE_ROW, False),
    "copy_": (lambda x: x.copy_(row), ONE_ROW, False),
    "fill_": (lambda x: x.fill_(1.0), 0, False),
    "uniform_": (lambda x: x.uniform_(1.0, 2.0), 0, False),
    "out=": (lambda x: torch.exp(row.expand(ROWS, WIDTH), out=x), ONE_ROW, False),
    "_foreach_copy_": (lambda x: torch._foreach_copy_([x[:1], x[1:2]], [row, row]), ONE_ROW, False),
}


def moved(call):
    """Returns bytes read and written by the last op of a call."""
    last = nbkit.opcost().run(call).costs.iloc[-1]
    return int(last["read_bytes"]), int(last["written_bytes"])


@pytest.mark.filterwarnings("ignore:index_reduce:UserWarning", "ignore:The reduce argument:UserWarning")
@pytest.mark.parametrize("name", WRITES)
def test_a_write_in_place_moves_what_it_changes(name):
    write, read, adds = WRITES[name]
    real = cache()
    write(real)
    changed = 4 * int((real != 0).sum())
    target = cache()
    assert moved(lambda: write(target)) == (read + changed * adds, changed) and changed > 0


def test_what_returns_a_new_tensor_copies_it_whole():
    x = cache()
    assert moved(lambda: x.index_copy(0, at, row)) == (x.nbytes + ONE_ROW + INDEX, x.nbytes)
    assert moved(lambda: x.scatter(0, wide, row)) == (x.nbytes + ONE_ROW + WIDTH * INDEX, x.nbytes)


def test_rows_that_are_written_again_and_again_are_no_more_than_all():
    x, often = torch.zeros(2, WIDTH), torch.zeros(50, dtype=torch.long)
    rows = torch.ones(50, WIDTH)
    assert moved(lambda: x.index_add_(0, often, rows)) == (rows.nbytes + often.nbytes + x.nbytes, x.nbytes)


def test_where_a_mask_says_what_is_written_it_may_be_all():
    x, mask = cache(), torch.arange(ROWS) < 3
    assert moved(lambda: x.index_put_((mask,), torch.ones(()))) == (x.nbytes + ROWS + 4, x.nbytes)


def test_a_gradient_of_some_rows_is_added_to_these():
    x, some = cache().requires_grad_(), torch.tensor([3, 4])
    costs = nbkit.opcost().run(lambda: x[some].sum().backward()).costs.set_index("op")
    (put,) = [op for op in costs.index if "index_put" in op]
    # The gradient of the sum is one number, expanded.
    assert costs.loc[put, ["read_bytes", "written_bytes"]].tolist() == [2 * ONE_ROW + 4 + 2 * INDEX, 2 * ONE_ROW]
    assert costs.loc["aten.new_zeros.default", "written_bytes"] == x.nbytes


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_a_bag_reads_its_rows_and_its_gradient_writes_the_table(mode):
    table, ids = torch.randn(ROWS, WIDTH, requires_grad=True), torch.tensor([[1, 2, 3], [4, 5, 5]])
    offsets = torch.tensor([0, 3])
    results = torch.embedding_bag(table, ids.view(-1), offsets, False, ["sum", "mean", "max"].index(mode))
    costs = nbkit.opcost().run(lambda: F.embedding_bag(ids, table, mode=mode).sum().backward()).costs
    rows = costs.set_index("op")[["read_bytes", "written_bytes"]]
    bag = rows[rows.index.str.contains("_embedding_bag.default")]
    assert bag.to_numpy().tolist() == [
        [6 * ONE_ROW + ids.nbytes + offsets.nbytes, sum(result.nbytes for result in results)]
    ]
    assert rows.loc["aten._embedding_bag_backward.default", "written_bytes"] == table.nbytes


def test_a_lookup_reads_its_rows_and_its_gradient_writes_the_table():
    table, ids = torch.randn(ROWS, WIDTH, requires_grad=True), torch.tensor([1, 2, 3])
    costs = nbkit.opcost().run(lambda: F.embedding(ids, table).sum().backward()).costs.set_index("op")
    rows = costs[["read_bytes", "written_bytes"]]
    assert rows.loc["aten.embedding.default"].tolist() == [3 * ONE_ROW + ids.nbytes, 3 * ONE_ROW]
    assert rows.loc["aten.embedding_dense_backward.default"].tolist() == [4 + ids.nbytes, table.nbytes]
