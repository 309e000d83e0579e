"""Regions of torch.compile whose kernels are no rows."""

from nbkit.timeline.compiled import has_hidden_kernels, hides_kernels
from tests.support.fakes import make_ops

REGION = {"level": "range", "op": "Torch-Compiled Region: 0/0"}
OPS = (
    REGION,
    {"parent_id": 0, "op": "aten.mm.default"},
    REGION,
    {"parent_id": 2, "op": "aten.mm.default"},
    {"parent_id": 3, "level": "runtime", "op": "cudaLaunchKernel"},
    {"level": "range", "op": "my block"},
)


def test_a_region_hides_its_kernels_where_no_row_below_it_is_one():
    ops = make_ops(*OPS)
    parent = ops["parent_id"].fillna(-1).to_numpy("int64")
    assert hides_kernels(ops, parent).tolist() == [True, False, False, False, False, False]
    assert has_hidden_kernels(ops) is True


def test_other_ranges_and_shown_kernels_are_not_hidden():
    assert has_hidden_kernels(make_ops({"level": "range", "op": "my block"}, {"parent_id": 0})) is False
    for level in ("kernel", "runtime"):
        assert has_hidden_kernels(make_ops(REGION, {"parent_id": 0, "level": level, "op": "k"})) is False
    assert has_hidden_kernels(make_ops({**REGION, "level": "aten"})) is False
    assert has_hidden_kernels(make_ops({"op": None})) is False
