"""Tests phases and what was inserted, from op_role, namescope and names."""

import pytest

from nbkit.readers.paddle.phases import inserted, phase
from nbkit.readers.paddle.records import Operation


def operation(kind, output="y", inputs=("x",), **attributes):
    return Operation(kind, [("X", list(inputs))], [("Out", [output])], attributes)


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        (0, "forward"),
        (256, "forward"),
        (1, "backward"),
        (257, "backward"),
        (2, "optimizer"),
        (16, "optimizer"),
        (18, "optimizer"),
        (4, "other"),
        (8, "other"),
        (4096, None),
        (-1, None),
        ("", None),
    ],
)
def test_op_role_is_a_mask(role, expected):
    assert phase(operation("scale", op_role=role)) == expected


def test_recomputed_operations_are_those_of_the_forward():
    assert phase(operation("cast", "tmp_1.subprog_0", op_role=1)) == "recompute"
    assert phase(operation("relu_grad", "tmp_1.subprog_0", op_role=1)) == "backward"
    assert phase(operation("cast", "tmp_1.subprog_x", op_role=1)) == "backward"


@pytest.mark.parametrize(
    ("kind", "expected"), [("pd_op.matmul_grad", "backward"), ("pd_op.adamw_", "optimizer"), ("f", None)]
)
def test_without_role_the_type_tells(kind, expected):
    assert phase(operation(kind)) == expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (operation("scale", op_role=0, op_namescope="/"), None),
        (operation("scale", op_role=1), "autograd"),
        (operation("cast", "a.subprog_1", op_role=1), "recompute"),
        (operation("sum", op_role=2), "optimizer"),
        (operation("split", op_role=0, op_namescope="/auto_parallel/reshard"), "communication"),
        (operation("scale", op_role=1, op_namescope="/auto_parallel/data_parallel"), "communication"),
        (operation("scale", op_role=0, op_namescope="//auto_parallel/rc_2/"), None),
        (operation("c_allreduce_sum", op_role=0), "communication"),
        (operation("pd_op.all_reduce_"), "communication"),
        (operation("cast", "a.cast_fp16", op_role=0), "amp"),
        (operation("cast", "a", op_role=0), None),
        (operation("elementwise_mul", inputs=("loss", "loss_scaling_0"), op_role=256), "amp"),
        (operation("update_loss_scaling", op_role=2), "amp"),
    ],
)
def test_what_put_an_operation_there(made, expected):
    assert inserted(made, phase(made)) == expected
