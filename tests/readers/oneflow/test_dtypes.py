"""Dtypes, sizes and distributions of OneFlow in the words of the frames."""

import pytest

from nbkit.readers.element_sizes import element_bytes
from nbkit.readers.oneflow.dtypes import dtype_name, element_count, sbp_name, sbp_names


@pytest.mark.parametrize(
    ("shape", "count"),
    [((2, 3), 6), ((), 1), ((0, 3), 0), (None, None), ((2, -1), None), ((1 << 50,), 1 << 50), ((1 << 50, 2), None)],
)
def test_elements_are_counted_where_sizes_are_known(shape: tuple[int, ...] | None, count: int | None) -> None:
    assert element_count(shape) == count


def test_dtypes_have_the_names_of_the_frames() -> None:
    assert [dtype_name(name) for name in ("kFloat", "kBFloat16", "kOFRecord")] == ["float32", "bfloat16", "of_record"]
    assert [dtype_name(name) for name in ("oneflow.float16", "flow.bool")] == ["float16", "bool"]
    assert dtype_name(None) is None
    names = "Char Float Double Int8 Int32 Int64 UInt8 Float16 BFloat16 Bool UInt16 Int16 Int128 Complex32 Complex128"
    sizes = [element_bytes(dtype_name(f"k{name}")) for name in names.split()]
    assert sizes == [1, 4, 8, 1, 4, 8, 1, 2, 2, 1, 2, 2, 16, 4, 16]
    assert [element_bytes(dtype_name(name)) for name in ("kOFRecord", "kTensorBuffer", "kOther")] == [None] * 3


def test_distributions_are_those_of_the_listing() -> None:
    split = {"split_parallel": [{"axis": ["1"]}]}
    assert sbp_name({"broadcast_parallel": [{}]}) == "B"
    assert sbp_name({"partial_sum_parallel": [{}]}) == "P"
    assert sbp_name(split) == "S(1)"
    assert sbp_name({"split_parallel": [{}]}) == "S(0)"
    assert sbp_names({}) is None
    assert sbp_names({"nd_sbp": ["B", "S(0)"]}) == ["B", "S(0)"]
    assert sbp_names({"nd_sbp": [{"sbp_parallel": [split, {"broadcast_parallel": [{}]}]}]}) == ["S(1)", "B"]
