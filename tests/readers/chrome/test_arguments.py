"""Tests bytes and group of a collective, as c10d and gloo write them into a trace."""

import pytest

from nbkit.readers.chrome.arguments import EventFlops, collective_bytes, collective_group

SENT = {"Collective name": "allreduce", "In msg nelems": 10}


@pytest.mark.parametrize(
    ("name", "args", "size_bytes"),
    [
        ("record_param_comms", {**SENT, "dtype": "BFloat16"}, 20),
        ("record_param_comms", {**SENT, "dtype": "Float8_e4m3fn"}, 10),
        ("record_param_comms", {**SENT, "dtype": "Unheard"}, None),
        ("record_param_comms", {"Collective name": "barrier", "dtype": "Float"}, None),
        ("gloo:all_reduce", {"Input Dims": [[3, 4]], "Input type": ["float"]}, 48),
        ("gloo:all_gather", {"Input Dims": [[2], [2]], "Input type": ["double", "double"]}, 32),
        ("gloo:barrier", {}, None),
        ("aten::mm", {"Input Dims": [[3, 4]], "Input type": ["float"]}, None),
    ],
)
def test_bytes(name, args, size_bytes):
    assert collective_bytes(name, args) == size_bytes


@pytest.mark.parametrize(
    ("args", "group"),
    [
        ({"Process Group Name": "0", "Process Group Description": "mesh_tp", "Group size": 4}, "mesh_tp (4 ranks)"),
        ({"Process Group Name": "0", "Group size": 1}, "0 (1 rank)"),
        ({"Process Group Name": "0"}, "0"),
        ({"Group size": 4}, None),
    ],
)
def test_group(args, group):
    assert collective_group(args) == group


def test_flops_are_those_of_the_file_or_worked_out_of_the_shapes() -> None:
    flops = EventFlops()
    shapes = [[2, 3], [3, 5]]
    assert flops.of("aten::mm", {"flops": 7, "Input Dims": shapes}) == 7
    assert (
        flops.of("aten::mm", {"Input Dims": shapes}) == flops.of("aten::mm", {"Input Dims": shapes, "flops": 0}) == 60
    )
    assert flops.of("aten::mm", {"Input Dims": [[4, 3], [3, 5]]}) == 120
    assert flops.of("aten::mm", {}) is flops.of("aten::mm", {"Input Dims": "x"}) is None
    assert flops.of("aten::relu", {"Input Dims": shapes}) is None
