"""Roofline positions from literal figures."""

import numpy as np
import pytest
import torch
from torch import nn

import nbkit
from nbkit.analysis.time.roofline import roofline
from nbkit.errors import OptionError
from tests.support.fakes import make_ops, make_tensors

MM = {"op": "aten.mm.default", "input_shapes": "[[2, 3], [3, 4]]", "flops": 48}


def test_only_ops_of_known_flops_are_there_and_bytes_stay_unknown() -> None:
    table = roofline(
        make_ops({**MM, "self_time_us": 2.0}, {**MM, "self_time_us": 4.0}, {"op": "aten.add"}), peak_flops=16e6
    )
    assert table[["calls", "time_us", "flops", "clock"]].to_numpy().tolist() == [[2, 6.0, 96, "host"]]
    assert table.dtypes[["calls", "flops", "size_bytes"]].tolist() == ["int64", "int64", "float64"]
    assert table["flops_per_second"].tolist() == [16e6]
    assert table[["size_bytes", "intensity", "bytes_per_second", "bound"]].isna().all(axis=None)
    assert table["roof_fraction"].tolist() == [1.0]


def test_an_element_size_gives_the_bytes_of_a_matrix_product() -> None:
    rows = make_ops({**MM, "self_time_us": 1.0}, {**MM, "op": "aten.mul.Tensor", "self_time_us": 0.5})
    table = roofline(rows, element_bytes=4, peak_flops=100e6, peak_bandwidth=130e6)
    assert table["size_bytes"].fillna(-1).tolist() == [4 * (6 + 12 + 8), -1]
    assert table["intensity"].iloc[0] == 48 / 104
    assert table["bound"].fillna("-").tolist() == ["memory", "-"]
    assert np.isclose(table["roof_fraction"].iloc[0], 48e6 / (48 / 104 * 130e6))


def test_a_bias_counts_as_an_input() -> None:
    addmm = {"op": "aten.addmm.default", "input_shapes": "[[4], [2, 3], [3, 4], [], []]", "flops": 48}
    assert roofline(make_ops(addmm), element_bytes=2)["size_bytes"].tolist() == [2 * (4 + 6 + 12 + 8)]


def test_a_product_in_place_has_the_bytes_of_one_that_is_not() -> None:
    addmm = {"op": "aten.addmm_.default", "input_shapes": "[[2, 4], [2, 3], [3, 4], [], []]", "flops": 48}
    assert roofline(make_ops(addmm), element_bytes=2)["size_bytes"].tolist() == [2 * (8 + 6 + 12 + 8)]


def test_tensors_give_the_bytes_of_any_op() -> None:
    tensors = make_tensors((0, "input", 5), (0, "input", 5), (0, "output", 6), (1, "input", 7))
    table = roofline(make_ops({"op": "aten.mul.Tensor", "flops": 640}), tensors, peak_flops=1e9, peak_bandwidth=1e9)
    assert table[["size_bytes", "intensity", "bound"]].to_numpy().tolist() == [[128.0, 5.0, "compute"]]
    assert np.isclose(table["roof_fraction"].iloc[0], 0.64)


def test_the_time_of_kernels_counts_where_there_is_any() -> None:
    table = roofline(make_ops({**MM, "total_device_time_us": 0.5, "self_time_us": 9.0}))
    assert table[["clock", "time_us", "flops_per_second"]].to_numpy().tolist() == [["device", 0.5, 96e6]]
    assert table["roof_fraction"].isna().all()


def test_a_call_of_no_time_has_no_rate() -> None:
    assert roofline(make_ops({**MM, "self_time_us": 0.0}), peak_flops=1.0)["flops_per_second"].isna().all()
    assert len(roofline(make_ops({}))) == len(roofline(make_ops())) == 0


@pytest.mark.parametrize("limit", ["peak_flops", "peak_bandwidth", "element_bytes"])
@pytest.mark.parametrize("value", [0, -1.0, "1e12"])
def test_a_limit_is_a_number_above_0(limit, value) -> None:
    with pytest.raises(OptionError, match=f"{limit} must be a number above 0, got {value!r}; give one, or None"):
        roofline(make_ops(MM), **{limit: value})


def test_shapes_and_dtypes_give_the_bytes_that_opcost_counts_of_the_tensors_themselves() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2, groups=2))
    x, left, right = torch.randn(2, 3, 16, 16), torch.randn(2, 6).bfloat16(), torch.randn(6, 4).bfloat16()
    q, k, v = (torch.randn(1, 2, 8, 4, requires_grad=True) for _ in range(3))

    def step() -> None:
        model(x).square().sum().backward()
        nn.functional.scaled_dot_product_attention(q, k, v).square().sum().backward()
        left @ right

    measured = roofline(nbkit.optime(shapes=True).run(step).ops).groupby("op")["size_bytes"].sum()
    costs = nbkit.opcost().run(step).costs
    costs = costs[costs["flops"] > 0]
    known = costs.assign(bytes=costs["read_bytes"] + costs["written_bytes"]).groupby("op")["bytes"].sum()
    assert len(known) == 5 and measured.to_dict() == known.to_dict()
    assert measured["aten.mm.default"] == 2 * (12 + 24 + 8)


def test_bytes_that_do_not_follow_from_shapes_are_unknown() -> None:
    transposed = {"op": "aten.convolution.default", "flops": 64, "arguments": '{"transposed": true}'}
    rows = make_ops({**transposed, "input_shapes": "[[1, 2, 4], [2, 2, 3]]", "input_dtypes": '["float32", "float32"]'})
    assert roofline(rows)["size_bytes"].isna().all()
